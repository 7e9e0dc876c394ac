import { AF_INET, receive, SOCK_DGRAM, sendTo, toSocketAddress, tryCalls, withSocket } from './sockets.ts'
import { syscall } from './syscall.ts'

/**
 * Makes a check whether a datagram to an IPv4 address comes back to the sandbox, because its own loopback has that address, as on gVisor.
 * Nothing that is sent to such an address leaves the sandbox. After one address that is not such, the check is false for all: each costs seconds.
 */
export function createOwnAddressCheck(): (address: string) => boolean {
  let mayComeBack = true
  return address => {
    if (!mayComeBack || address.includes(':')) return false
    mayComeBack = comesBack(address)
    return mayComeBack
  }
}

function comesBack(address: string): boolean {
  const word = crypto.randomUUID()
  const { text } = tryCalls(got =>
    withSocket([AF_INET, SOCK_DGRAM, 0], socket => {
      const own = toSocketAddress('0.0.0.0', 0).bytes
      syscall('bind', socket, own, own.byteLength)
      const length = Buffer.alloc(4)
      length.writeUInt32LE(own.byteLength)
      syscall('getsockname', socket, own, length)
      sendTo(socket, Buffer.from(word), toSocketAddress(address, own.readUInt16BE(2)).bytes)
      got(receive(socket))
    }),
  )
  return text === word
}
