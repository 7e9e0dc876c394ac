import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect, TLSSocket } from 'node:tls'
import { beforeTimeout } from '../../async/timeout.ts'
import { createByteSource, write } from '../../http1/byte-source.ts'
import { type TunnelEnd, watchIdle } from '../../http1/tunnel.ts'
import { codeOf } from '../../read/error-code.ts'
import { finish } from '../proxy.ts'
import { createProxyClient } from '../proxy-client.ts'
import type { Authority } from './authority.ts'
import { type ClientHello, readClientHello } from './client-hello.ts'
import { relayHttp1 } from './http1.ts'
import { authorityOf, type Relay } from './relay.ts'

export interface Interception extends Omit<Relay, 'failure' | 'moved' | 'hasRoom'> {
  authority: Authority
  /** Authorities, as PEM, that may have issued a server's certificate. By default those that this process trusts. */
  roots?: readonly string[]
  /** Reports why nothing was carried. */
  refused(reason: string): void
}

const HELLO_MS = 30_000
const HANDSHAKE_MS = 30_000
const protocols = ['h2', 'http/1.1']
/** Fatal alerts of TLS. */
const [NO_SUCH_NAME, NO_SUCH_PROTOCOL] = [112, 120]

/**
 * Ends TLS between a program and the host that it has reached, and carries its requests with their secrets. Resolves when both
 * connections have ended. Never throws.
 */
export async function intercept(client: TunnelEnd, upstream: Socket, interception: Interception): Promise<void> {
  const idle = watchIdle([client.socket, upstream])
  const cut = () => void client.socket.destroy()
  try {
    const hello = await greet(client, interception)
    if (hello) await carry(client, upstream, hello, { ...interception, moved: idle.moved })
  } catch {
    // One side has broken the connection.
  } finally {
    idle.stop()
    cut()
    upstream.destroy()
  }
}

/** Reads the program's first message; undefined when it was refused. */
async function greet(
  { socket, source }: TunnelEnd,
  { target, refused }: Interception,
): Promise<ClientHello | undefined> {
  const hello = await beforeTimeout(HELLO_MS, readHello(source), () => undefined)
  if (!hello) {
    refused('a secret is bound to it, and the program does not speak TLS there')
    // Nothing was sent to the host. A program that speaks plain HTTP can show this text.
    const text = `threadbox: a secret is bound to ${authorityOf(target)}, which takes TLS alone\n`
    socket.write(`HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: ${text.length}\r\n\r\n${text}`)
    await finish(socket)
    return undefined
  }
  const { serverName, protocols: spoken } = hello
  if (serverName !== undefined && serverName.toLowerCase().replace(/\.$/, '') !== target.name) {
    refused('a secret is bound to it, and the program asks for another name there')
    await alert(socket, NO_SUCH_NAME)
    return undefined
  }
  if (spoken.length === 0 || spoken.some(each => protocols.includes(each))) return hello
  refused('a secret is bound to it, and the program does not speak HTTP there')
  await alert(socket, NO_SUCH_PROTOCOL)
  return undefined
}

/** Undefined when the first bytes are not TLS; they can still be read. */
async function readHello(source: TunnelEnd['source']): Promise<ClientHello | undefined> {
  let bytes: Buffer = Buffer.alloc(0)
  try {
    for (;;) {
      const piece = await source.read()
      if (!piece) return undefined
      bytes = Buffer.concat([bytes, piece])
      const hello = readClientHello(bytes)
      if (hello) return hello
    }
  } catch {
    return undefined
  } finally {
    source.unread(bytes)
  }
}

async function alert(socket: Duplex, description: number): Promise<void> {
  socket.write(Buffer.of(21, 3, 3, 0, 2, 2, description))
  await finish(socket)
}

async function carry(
  client: TunnelEnd,
  upstream: Socket,
  hello: ClientHello,
  interception: Interception & Pick<Relay, 'moved'>,
): Promise<void> {
  const { target, authority, roots, refused } = interception
  const wanted = protocols.filter(each => hello.protocols.includes(each))
  let server: TLSSocket | undefined
  let failure: string | undefined
  // When the socket is destroyed here rather than ended by its peer, the TLS above it is not told.
  client.socket.once('close', () => {
    upstream.destroy()
    server?.destroy()
  })
  try {
    server = await secured(
      connect({
        ...{ socket: upstream, servername: target.name, host: target.name },
        ALPNProtocols: wanted.length > 0 ? wanted : ['http/1.1'],
        ...(roots && { ca: [...roots] }),
      }),
      'secureConnect',
    )
  } catch (error) {
    failure = `no safe connection to it: ${wordsOf(error)}`
    refused(failure)
    upstream.destroy()
  }
  // The program gets the protocol that the server speaks, because nothing is translated.
  const chosen = server
    ? server.alpnProtocol || 'http/1.1'
    : wanted.includes('http/1.1')
      ? 'http/1.1'
      : (wanted[0] ?? 'http/1.1')
  const { key, certificate } = await authority.leafFor(target.name).catch(error => {
    refused(`no certificate could be made for it: ${wordsOf(error)}`)
    throw error
  })
  const beneath = toStream(client)
  const secure = await secured(
    new TLSSocket(asSocket(beneath), {
      ...{ isServer: true, key, cert: certificate },
      ...(wanted.length > 0 && { ALPNProtocols: [chosen] }),
    }),
    'secure',
  ).catch(error => {
    refused(`a secret is bound to it, and the program refused the server's certificate: ${wordsOf(error)}`)
    throw error
  })
  client.socket.once('close', () => secure.destroy())
  pace(secure, beneath)
  const relay: Relay = { ...interception, hasRoom: () => hasRoom(beneath), ...(failure !== undefined && { failure }) }
  if (chosen === 'h2') {
    const { relayHttp2 } = await import('./http2.ts')
    await relayHttp2(secure, server, relay)
  } else {
    const end = server && { socket: server, source: createByteSource(server) }
    await relayHttp1(createProxyClient(secure), end, relay)
  }
  if (!(client.socket instanceof Socket)) await finish(client.socket)
}

/** Resolves to the socket when TLS is established. Destroys it, and rejects, when that fails or takes too long. */
async function secured(socket: TLSSocket, event: 'secure' | 'secureConnect'): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once(event, resolve)
  socket.on('error', reject)
  socket.once('close', () => reject(new Error('it closed the connection')))
  try {
    await beforeTimeout(HANDSHAKE_MS, promise, () => {
      throw new Error('it took too long')
    })
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** The stream beneath TLS: the socket itself, with what was read of it already, or else a stream of what follows. */
function toStream({ socket, source }: TunnelEnd): Duplex {
  if (socket instanceof Socket) {
    const ahead = source.takeAhead()
    if (ahead) socket.unshift(ahead)
    return socket
  }
  const stream = new Duplex({
    read: () =>
      void source.read().then(
        piece => stream.push(piece ?? null),
        error => stream.destroy(error),
      ),
    write: (piece, _, done) => void write(socket, piece).then(() => done(), done),
    final: done => void socket.end(done),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  stream.on('error', () => {})
  socket.once('close', () => stream.destroy())
  return stream
}

/**
 * Over a stream that is not a socket, TLS accepts everything that is written at once. So its writers wait for the stream beneath.
 */
function pace(secure: TLSSocket, beneath: Duplex): void {
  if (beneath instanceof Socket) return
  const write = secure.write.bind(secure)
  Object.assign(secure, {
    write: (...input: Parameters<typeof write>) => write(...input) && !beneath.writableNeedDrain,
  })
  beneath.on('drain', () => secure.emit('drain'))
}

/** HTTP/2 writes past the stream that it is given, so each of its requests waits here instead. */
async function hasRoom(beneath: Duplex): Promise<void> {
  while (!(beneath instanceof Socket) && beneath.writableNeedDrain && !beneath.destroyed) {
    const { promise, resolve } = Promise.withResolvers<void>()
    beneath.once('drain', resolve).once('close', resolve)
    await promise
    beneath.off('drain', resolve).off('close', resolve)
  }
}

/** TLS works over any stream in Bun, as in Node; only the types require a socket. */
const asSocket = (stream: Duplex): Socket => stream as Socket

function wordsOf(error: unknown): string {
  const code = codeOf(error)
  const message = error instanceof Error ? error.message : 'it failed'
  return code && !message.includes(code) ? `${message} (${code})` : message
}
