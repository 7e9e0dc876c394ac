import type { Attempt } from './program.ts'
import { receive, SOCK_DGRAM, SOCK_STREAM, sendDatagram, talk, toSocketAddress, withSocket } from './sockets.ts'
import { CallError, syscall } from './syscall.ts'

const SOCK_NONBLOCK = 0x800
const [SOL_SOCKET, SO_REUSEADDR, SO_REUSEPORT] = [1, 2, 15]
const [RESOLVER_PORT, PROXY_PORT] = [53, 3128]
/** The proxy refuses this at once. The resolver waits for more, and does not answer. */
const NONSENSE = '\0\x01\r\n\r\n'

/** Takes a port by each address, with the options that let several share one. */
export function takePorts({ words, found }: Attempt): void {
  for (const port of words.map(Number)) {
    // The proxy has no address of IPv6.
    const used = ['127.0.0.1', ...(port === PROXY_PORT ? [] : ['::1'])]
    for (const address of [...used, '0.0.0.0', '::']) {
      for (const type of port === RESOLVER_PORT ? [SOCK_STREAM, SOCK_DGRAM] : [SOCK_STREAM]) {
        if (canTake({ address, port, type, used })) found(`${address} port ${port} was free to take`)
      }
    }
  }
}

interface Taking {
  address: string
  port: number
  type: number
  /** The addresses at which programs use the port. */
  used: readonly string[]
}

/**
 * Whether the port can be taken by this address. gVisor allows a socket of all addresses beside one of 127.0.0.1: there it counts whether what
 * goes to the addresses in use comes to the socket.
 */
function canTake({ address, port, type, used }: Taking): boolean {
  const { family, bytes } = toSocketAddress(address, port)
  const isStream = type === SOCK_STREAM
  const take = (socket: number): boolean => {
    for (const option of [SO_REUSEADDR, SO_REUSEPORT]) {
      syscall('setsockopt', socket, SOL_SOCKET, option, Buffer.from([1, 0, 0, 0]), 4)
    }
    syscall('bind', socket, bytes, bytes.byteLength)
    if (isStream) syscall('listen', socket, used.length)
    return used.includes(address) || used.some(each => getsWhatGoesTo(each, socket))
  }
  const getsWhatGoesTo = (each: string, socket: number): boolean => {
    if (isStream) talk(each, port, NONSENSE)
    else sendDatagram(each, port, Buffer.from(NONSENSE), 'an answer')
    // The other side has answered by now, or what was sent waits here.
    const got = tryCall(() => (isStream ? syscall('close', syscall('accept', socket, null, null)) : receive(socket)))
    return got !== undefined
  }
  return tryCall(() => withSocket([family, type | SOCK_NONBLOCK, 0], take)) ?? false
}

/** The result is undefined when a system call of the work failed. */
function tryCall<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof CallError) return undefined
    throw error
  }
}
