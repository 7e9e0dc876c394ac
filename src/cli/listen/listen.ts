import type { Config } from '../../core/config.ts'
import type { Log } from '../../core/runtime.ts'
import { messageOf } from '../../errors.ts'
import { type SocketHandlers, websocket } from '../../http/socket.ts'
import { readTlsPair, type TlsPair, warningsOf } from '../../start/tls-pair.ts'
import { keepConnectionsAlive } from './keep-alive.ts'
import { openListeningSockets } from './listening-sockets.ts'
import { limitStrangers } from './strangers.ts'
import { watchPair } from './watch-pair.ts'

/** Connections without a valid key are closed after this silence, because they could use up the descriptors. */
const STRANGER_IDLE_SECONDS = 10
/** How long a handshake that has begun at the older socket may take: Linux repeats its part for this long. */
const HANDSHAKES_MS = 5000

export type Server = Bun.Server<SocketHandlers>

/** The server's listening socket, with TLS when the server has a certificate. */
export interface Listener {
  port: number
  /** The origin, such as `https://host:7070`. */
  origin: string
  /** The server that holds a request's connection: there is one for each certificate that was used. */
  serverOf(request: Request): Server
  /** Called when a valid key was sent on the request's connection. */
  keyShown(request: Request): void
  /** Accepts no more connections. Resolves when open requests have ended; with `isAtOnce` they are cut off. */
  stop(isAtOnce?: boolean): Promise<void>
}

type Listening = Omit<Listener, 'keyShown'>
type Answer = (request: Request) => Promise<Response | undefined>

/** Starts to listen. Throws an error that names the setting which prevents it. */
export function listen(config: Config, log: Log, answer: Answer): Listener {
  const { host, tls, callerLimits, trustedProxies: trusted } = config
  const listening = tls ? listenByTls(config, tls, log, answer) : plain(open(host, config.port, answer))
  const { port, serverOf, stop } = listening
  if (!keepConnectionsAlive(port)) log('connections have no keep-alive: /proc does not show them')
  const strangers = limitStrangers({ port, most: callerLimits['address.connections'].count, trusted })
  return {
    ...listening,
    keyShown(request) {
      const other = serverOf(request).requestIP(request)
      if (other) strangers.know(other.address, other.port)
    },
    async stop(isAtOnce) {
      await stop(isAtOnce)
      strangers[Symbol.dispose]()
    },
  }
}

const plain = (server: Server): Listening => ({
  port: server.port ?? 0,
  origin: server.url.origin,
  serverOf: () => server,
  stop: isAtOnce => server.stop(isAtOnce),
})

function listenByTls({ host, port }: Config, files: NonNullable<Config['tls']>, log: Log, answer: Answer): Listening {
  const servers: Server[] = []
  const holders = new WeakMap<Request, Server>()
  const start = (port: number, pair: TlsPair) => {
    const server: Server = open(
      host,
      port,
      request => {
        holders.set(request, server)
        return answer(request)
      },
      { tls: pair, reusePort: servers.length > 0 },
    )
    servers.push(server)
    for (const warning of warningsOf(pair, files, new Date())) log(warning, 'error')
    return server
  }
  const first = readTlsPair(files)
  const server = start(port, first)
  // A server without its listening socket reports no port.
  const { port: bound = 0, url } = server
  const { origin } = url
  const watching = watchPair(files, first, log, pair => replace(bound, () => start(bound, pair)))
  return {
    port: bound,
    origin,
    serverOf: request => holders.get(request) ?? server,
    async stop(isAtOnce) {
      watching[Symbol.dispose]()
      await Promise.all(servers.map(each => each.stop(isAtOnce)))
    },
  }
}

/**
 * Lets a younger socket take all new connections of a port, and then ends the older one. Bun's `reload` would keep the
 * certificate, and its `stop` drops idle connections. So the older server stays, without its listening socket, as long as its
 * connections do.
 */
async function replace(port: number, start: () => unknown): Promise<void> {
  const sockets = openListeningSockets()
  try {
    const [older] = sockets.find(port)
    if (older === undefined || !sockets.share(older)) throw new Error('the listening socket cannot be shared')
    start()
    const younger = sockets.find(port).find(each => each !== older)
    if (younger !== undefined) sockets.preferYounger(younger)
    keepConnectionsAlive(port)
    await Bun.sleep(HANDSHAKES_MS)
    // A stop may have closed the socket meanwhile, and its number may belong to another file.
    if (sockets.find(port).includes(older)) sockets.end(older)
  } finally {
    sockets[Symbol.dispose]()
  }
}

function open(host: string, port: number, fetch: Answer, options: { tls?: TlsPair; reusePort?: boolean } = {}): Server {
  try {
    return Bun.serve<SocketHandlers>({
      websocket,
      hostname: host,
      port,
      idleTimeout: STRANGER_IDLE_SECONDS,
      reusePort: options.reusePort ?? false,
      ...(options.tls && { tls: options.tls }),
      // Without this, Bun prints a stack when the body of a response fails; the client sees that the connection ends.
      development: false,
      // JSON bodies have their own limit; files may have any size.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      fetch,
    })
  } catch (error) {
    throw new Error(`--host, --port: cannot listen on ${host}:${port}: ${messageOf(error)}`)
  }
}
