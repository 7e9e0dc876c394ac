import { type Connection, listen } from '../wire/connection.ts'
import { MAX_QUESTION_BYTES } from '../wire/name-messages.ts'

const PORT = 53
/** The addresses that a sandbox's resolv.conf names, or that programs try where it names none. */
const hosts = ['127.0.0.1', '::1']
const MAX_CONNECTIONS = 64
/** This many questions of one connection may wait for their answers. */
const MAX_PIPELINED = 100
/** A connection is closed when its program leaves this many bytes of answers unread. */
const MAX_UNREAD_BYTES = 256 * 1024
const IDLE_MS = 15_000

export type NameTransport = 'udp' | 'tcp'
export type Reply = (answer: Uint8Array) => void
export type OnMessage = (message: Uint8Array, transport: NameTransport, reply: Reply) => void

/** Takes DNS messages of programs inside, over UDP and TCP, until the process ends. It leaves out an address where it cannot listen. */
export function listenForNames(onMessage: OnMessage): void {
  let connections = 0
  const accept = (connection: Connection) => {
    if (connections >= MAX_CONNECTIONS) return connection.destroy()
    connections++
    connection.on('close', () => connections--)
    serveConnection(connection, onMessage)
  }
  for (const hostname of hosts) {
    try {
      listen({ hostname, port: PORT }, accept)
    } catch {
      // Another process has the port, or the kernel has no IPv6.
    }
    listenForDatagrams(hostname, onMessage).catch(() => {})
  }
}

async function listenForDatagrams(hostname: string, onMessage: OnMessage): Promise<void> {
  await Bun.udpSocket({
    hostname,
    port: PORT,
    socket: {
      data(socket, bytes, port, address) {
        // The memory is used again for the next message.
        onMessage(Buffer.from(bytes), 'udp', answer => void socket.send(answer, port, address))
      },
      // An answer that cannot be sent is lost, as any datagram may be.
      error() {},
    },
  })
}

/** Each message is preceded by its length, in two bytes. */
function serveConnection(connection: Connection, onMessage: OnMessage): void {
  let held = Buffer.alloc(0)
  let pending = 0
  let timer: Timer
  const expect = () => {
    clearTimeout(timer)
    timer = setTimeout(() => connection.destroy(), IDLE_MS)
  }
  const reply = (answer: Uint8Array) => {
    pending--
    if (connection.writableLength > MAX_UNREAD_BYTES) return connection.destroy()
    const length = Buffer.of(answer.byteLength >> 8, answer.byteLength & 255)
    connection.write(Buffer.concat([length, answer]))
    expect()
  }
  expect()
  connection.on('close', () => clearTimeout(timer))
  connection.on('end', () => connection.end())
  connection.on('data', bytes => {
    held = Buffer.concat([held, bytes])
    while (held.byteLength >= 2) {
      const length = held.readUInt16BE(0)
      if (length > MAX_QUESTION_BYTES || pending >= MAX_PIPELINED) return connection.destroy()
      if (held.byteLength < 2 + length) return
      pending++
      onMessage(Buffer.from(held.subarray(2, 2 + length)), 'tcp', reply)
      held = held.subarray(2 + length)
    }
    held = Buffer.from(held)
  })
}
