import { createPrivateKey } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { connect, createServer as createNetServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { createEgress, type Egress } from '../../../src/egress/egress.ts'
import type { Policy } from '../../../src/egress/policy.ts'
import { createAuthority } from '../../../src/egress/secrets/authority.ts'
import type { BoundSecret, SecretUse } from '../../../src/egress/secrets/binding.ts'
import { makeAuthority, makeKey, makeLeaf } from '../../../src/egress/secrets/certificates.ts'
import { all, listen, loopback, SANDBOX, until } from '../support.ts'

export const NAME = 'api.test'
export const SECRET = 's3cret/Value+of=GitHub'
export const PLACEHOLDER = 'tbx_placeholder_0123456789'

/** The authority of the test's own internet, and what its hosts show. */
const internet = makeAuthority()
const hostKey = makeKey()
const pairOf = (name: string) => ({
  key: hostKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  cert: makeLeaf(createPrivateKey(internet.key), hostKey, name),
})

export interface SecretBench {
  egress: Egress
  proxy: number
  authorityPem: string
  /** Set by a test: what is bound now. */
  bound: BoundSecret[]
  uses: SecretUse[]
  lines: string[]
  policy: Policy
  /** Opens a tunnel to a host as a program does. */
  tunnel(host: string): Promise<Socket>
  /** Speaks TLS in a tunnel, as a program that trusts the authority. */
  open(host: string, options?: { servername?: string; protocols?: string[] }): Promise<TLSSocket>
  /** Sends text in a tunnel with TLS, and reads until the other side ends. */
  say(host: string, text: string): Promise<string>
}

const open: { close(): void }[] = []
/** Closes all that a test has opened. */
export const closeAll = () => {
  for (const each of open.splice(0)) each.close()
}

/** A sandbox's way out, with every name at 127.0.0.2 but what `names` says. */
export async function openSecretBench(
  names: Record<string, string[]> = {},
  roots: readonly string[] = [internet.certificate],
  toStream: (socket: Socket) => Duplex = socket => socket,
): Promise<SecretBench> {
  let kept: string | undefined
  const authority = createAuthority({ read: () => kept, write: text => (kept = text) })
  const egress = createEgress({
    policyOf: () => bench.policy,
    log: line => bench.lines.push(line),
    resolve: async name => names[name] ?? ['127.0.0.2'],
    secretsOf: () => bench.bound,
    usedSecret: (_, use) => bench.uses.push(use),
    authority,
    roots,
  })
  const server = createNetServer({ allowHalfOpen: true }, socket => egress.serve(SANDBOX, toStream(socket)))
  const proxy = await listen(server, '127.0.0.1')
  const authorityPem = await authority.certificatePem()
  const tunnel = async (host: string) => {
    const socket = connect({ port: proxy, host: '127.0.0.1', allowHalfOpen: true })
    open.push({ close: () => socket.destroy() })
    socket.on('error', () => {})
    socket.write(`CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    const head = await until(socket, '\r\n\r\n')
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(head)
    return socket
  }
  const bench: SecretBench = {
    ...{ egress, proxy, authorityPem, bound: [], uses: [], lines: [], tunnel },
    policy: loopback,
    async open(host, { servername = host.replace(/:\d+$/, ''), protocols = ['http/1.1'] } = {}) {
      const socket = await tunnel(host)
      const secure = connectTls({
        ...{ socket, servername, ALPNProtocols: protocols, ca: [authorityPem] },
        checkServerIdentity: () => undefined,
      })
      await new Promise<void>((resolve, reject) => void secure.once('secureConnect', resolve).once('error', reject))
      secure.on('error', () => {})
      open.push({ close: () => secure.destroy() })
      return secure
    },
    async say(host, text) {
      const secure = await bench.open(host)
      secure.write(text)
      return await all(secure)
    },
  }
  open.push({
    close() {
      egress.close()
      server.close()
    },
  })
  return bench
}

/** The connection as one that a guest carries: a stream that is no socket. */
export function carried(socket: Socket): Duplex {
  const stream = new Duplex({
    read: () => void socket.resume(),
    write: (piece, _, done) => void (socket.write(piece) ? done() : socket.once('drain', () => done())),
    final: done => void socket.end(done),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  socket.on('data', piece => void (stream.push(piece) || socket.pause()))
  socket
    .on('end', () => stream.push(null))
    .on('close', () => stream.destroy())
    .on('error', () => {})
  return stream
}

/** A binding of SECRET to a host. */
export const bind = (host: string, binding: Partial<BoundSecret> = {}): BoundSecret => ({
  ...{ name: 'GITHUB', hosts: [host], as: { header: 'authorization', format: 'Bearer {}' }, value: () => SECRET },
  ...binding,
})

export interface Host {
  /** `api.test:1234` */
  authority: string
  port: number
  requests: HostRequest[]
}

export interface HostRequest {
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: string
}

type Answer = (request: HostRequest, response: ServerResponse) => void

/** A server of HTTP/1.1 on 127.0.0.2. It answers `ok` unless told otherwise. */
export async function openHost(answer: Answer = (_, response) => response.end('ok'), name = NAME): Promise<Host> {
  const requests: HostRequest[] = []
  const server = createHttpsServer(pairOf(name), (incoming, response) => {
    const pieces: Buffer[] = []
    incoming.on('data', piece => pieces.push(piece))
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming
      const request = { method, url, headers, body: Buffer.concat(pieces).toString() }
      requests.push(request)
      answer(request, response)
    })
  })
  const port = await listen(server, '127.0.0.2')
  open.push({ close: () => server.close() })
  return { authority: `${name}:${port}`, port, requests }
}

/** A server on 127.0.0.2 that hears and says bytes over TLS. */
export async function openRawHost(
  onConnection: (socket: TLSSocket) => void,
  name = NAME,
): Promise<Omit<Host, 'requests'>> {
  const server = createTlsServer({ ...pairOf(name), ALPNProtocols: ['http/1.1'] }, socket => {
    socket.on('error', () => {})
    open.push({ close: () => socket.destroy() })
    onConnection(socket)
  })
  const port = await listen(server, '127.0.0.2')
  open.push({ close: () => server.close() })
  return { authority: `${name}:${port}`, port }
}

/** A server of HTTP/2 on 127.0.0.2. */
export async function openHost2(
  onStream: (stream: ServerHttp2Stream, headers: Record<string, string | string[] | undefined>) => void,
  name = NAME,
): Promise<Omit<Host, 'requests'>> {
  const server = createSecureServer({ ...pairOf(name), allowHTTP1: false })
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => {})
    onStream(stream, headers as Record<string, string>)
  })
  server.on('session', session => open.push({ close: () => session.destroy() }))
  const port = await listen(server, '127.0.0.2')
  open.push({ close: () => server.close() })
  return { authority: `${name}:${port}`, port }
}
