import { createSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'

/**
 * A server of the selftest on this machine, which no sandbox may reach. It counts only the visits that say its word, since strangers may
 * find it too, and answers nothing else.
 */
export interface Bait {
  /** One port for TCP and UDP. */
  readonly port: number
  /** The addresses that the bait listens on: loopback, and the addresses of this machine's interfaces where that was possible. */
  readonly addresses: readonly string[]
  /**
   * The words that a visitor sends: in its first bytes before a newline, in the path of a request, or in a datagram. `tag` is the probe's
   * id.
   */
  wordOf(tag: string): string
  /** Counts the visits with this tag. Call it once everything that was sent before has arrived. */
  visits(tag: string): number
  close(): Promise<void>
}

const MAX_BYTES = 4096

/** Listens on a free port. */
export async function openBait(): Promise<Bait> {
  const secret = `bait-${crypto.randomUUID()}`
  const counts = new Map<string, number>()
  const servers: Server[] = []
  const sockets = new Set<Socket>()
  const datagrams: ReturnType<typeof createSocket>[] = []
  /** Returns true when the bytes contain the word and its tag, and the tag does not go on after that. */
  const count = (bytes: Buffer): boolean => {
    const at = bytes.indexOf(secret)
    if (at < 0) return false
    const [tag = ''] = /^[\w./-]*/.exec(bytes.toString('latin1', at + secret.length + 1)) ?? []
    counts.set(tag, (counts.get(tag) ?? 0) + 1)
    return true
  }
  const serve = (socket: Socket) => {
    sockets.add(socket)
    let got = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
    })
    socket.on('data', bytes => {
      got = Buffer.concat([got, Buffer.from(bytes)])
      const isCounted = got.includes('\n') && count(got)
      if (isCounted) socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\ncaught')
      else if (got.byteLength > MAX_BYTES) socket.destroy()
    })
  }
  const listen = (host: string, port: number) =>
    new Promise<number | undefined>(resolve => {
      const server = createServer(serve)
      server.once('error', () => resolve(undefined))
      server.listen({ host, port }, () => {
        servers.push(server)
        const address = server.address()
        resolve(typeof address === 'object' && address ? address.port : undefined)
      })
    })
  const listenForDatagrams = (host: string, port: number) =>
    new Promise<void>(resolve => {
      const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
      socket.on('error', () => resolve())
      socket.on('message', bytes => void count(bytes))
      socket.bind({ address: host, port, exclusive: true }, () => {
        datagrams.push(socket)
        resolve()
      })
    })

  const port = await listen('127.0.0.1', 0)
  if (port === undefined) throw new Error('no port of 127.0.0.1 could be listened on')
  const addresses = ['127.0.0.1']
  for (const host of ['::1', ...ownAddresses()]) if ((await listen(host, port)) !== undefined) addresses.push(host)
  for (const host of addresses) await listenForDatagrams(host, port)
  return {
    ...{ port, addresses },
    wordOf: tag => `${secret}/${tag}`,
    visits: tag => counts.get(tag) ?? 0,
    async close() {
      for (const socket of sockets) socket.destroy()
      for (const socket of datagrams) socket.close()
      await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
    },
  }
}

const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap(found =>
    (found ?? []).filter(each => !each.internal && !each.scopeid).map(({ address }) => address),
  )
