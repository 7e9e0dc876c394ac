import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { beforeTimeout } from '../async/timeout.ts'
import { requestFraming } from '../http1/body.ts'
import { type ByteSource, createByteSource, write } from '../http1/byte-source.ts'
import { getValues, MAX_HEAD_BYTES, parseRequest, type RequestHead } from '../http1/head.ts'
import { HttpError } from '../http1/http-error.ts'
import { passAhead, type TunnelEnd, tunnel } from '../http1/tunnel.ts'
import { forward } from './forward.ts'
import { answerLocally } from './local.ts'
import type { Target } from './policy.ts'
import { answerPlainly, createProxyClient, type ProxyClient } from './proxy-client.ts'
import { parseHost } from './rules.ts'
import type { Turn } from './traffic.ts'

/** How long a request's first byte may take, and then the rest of its head. */
const HEAD_MS = 30_000
/** How long a program may take to read its last answer. */
const LINGER_MS = 10_000

export interface ProxyParts {
  /** Opens a connection to the requested host, for the first request of a program's connection or for a next one. Throws an HttpError. */
  dial(target: Target, signal: AbortSignal, turn: Turn): Promise<Socket>
  /**
   * Carries the bytes between the program's socket and this one until both have ended; no byte passes through this process.
   * Undefined when they cannot be carried.
   */
  carry?(upstream: Socket): Promise<void> | undefined
  /** Reads from a connection that `dial` has opened. */
  sourceOf?(upstream: Socket): ByteSource
  /**
   * Ends TLS to a host with secrets, in place of a tunnel, until both connections have ended. Undefined for all other hosts.
   * `pass` is the password that the program sent to this proxy.
   */
  intercept?(target: Target, client: TunnelEnd, upstream: Socket, pass?: string): Promise<void> | undefined
  /** Answers requests for the proxy itself. */
  local(request: Request): Promise<Response>
  /** Called before a request is read. */
  entered?(): void
  headMs?: number
}

/** Speaks HTTP/1.1 as a proxy with one program until one side ends. Never throws; nothing is left open when it resolves. */
export async function serveProxy(socket: Duplex, parts: ProxyParts): Promise<void> {
  const client = createProxyClient(socket)
  try {
    let turn: Turn = 'connection'
    while (await serveOne(client, parts, turn)) turn = 'request'
    await finish(socket)
  } catch {
    // The program is gone, or its answer broke off.
  } finally {
    socket.destroy()
  }
}

/** Resolves when the last answer was sent: closing earlier would lose it. */
export async function finish(socket: Duplex): Promise<void> {
  if (socket.destroyed || socket.writableFinished) return
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  const finished = new Promise<void>(resolve => socket.once('finish', resolve).once('close', resolve))
  socket.end()
  await finished
  clearTimeout(timer)
}

/** Answers one request. False when the connection must not carry another. */
async function serveOne(client: ProxyClient, parts: ProxyParts, turn: Turn): Promise<boolean> {
  let request: RequestHead | undefined
  let subject = ''
  try {
    request = await readRequest(client, parts)
    if (!request) return false
    if (request.method === 'CONNECT') {
      const target = parseAuthority(request.target)
      subject = `${formatTarget(target)}: `
      const framing = requestFraming(request)
      if (framing.kind !== 'length' || framing.bytes > 0) throw new HttpError(400, 'CONNECT has no body')
      const upstream = await parts.dial(target, client.signal, 'connection')
      await write(client.socket, 'HTTP/1.1 200 Connection established\r\n\r\n')
      const intercepted = parts.intercept?.(target, client, upstream, passOf(request))
      if (intercepted) {
        await intercepted
        return false
      }
      const end = { socket: upstream, source: (parts.sourceOf ?? createByteSource)(upstream) }
      const carried = passAhead(client, end) ? parts.carry?.(upstream) : undefined
      await (carried ?? tunnel(client, end))
      return false
    }
    if (request.target.startsWith('/')) return await answerLocally(client, request, request.target, parts.local)
    const absolute = parseAbsolute(request.target)
    subject = `${formatTarget(absolute.target)}: `
    // Before anything is dialled: a request that two servers could read in two ways is refused.
    requestFraming(request)
    const upstream = await parts.dial(absolute.target, client.signal, turn)
    return await forward(client, request, absolute, upstream)
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    await answerPlainly(client, error.status, `${subject}${error.message}`, request?.method === 'HEAD')
    return false
  }
}

/** Undefined when the program sends no request in time: there is nothing to answer then. */
async function readRequest(
  { source }: ProxyClient,
  { headMs = HEAD_MS, entered = () => {} }: ProxyParts,
): Promise<RequestHead | undefined> {
  const first = await beforeTimeout(headMs, source.read(), () => undefined)
  if (!first) return undefined
  source.unread(first)
  const head = await beforeTimeout(headMs, source.readThrough('\r\n\r\n', MAX_HEAD_BYTES), () => {
    throw new HttpError(408, 'the request took too long')
  })
  if (!head) return undefined
  entered()
  return parseRequest(head)
}

/** The password that a program sends to this proxy. */
function passOf({ headers }: RequestHead): string | undefined {
  const [value = ''] = getValues(headers, 'proxy-authorization')
  const [, encoded] = /^Basic +([A-Za-z0-9+/=]{1,400})$/i.exec(value) ?? []
  return encoded && /:(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('latin1'))?.[1]
}

const formatTarget = ({ name, port }: Target) => (name.includes(':') ? `[${name}]:${port}` : `${name}:${port}`)

function parseAuthority(text: string, defaultPort?: number): Target {
  const [, hostText = '', portText] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = parseHost(hostText)
  const port = portText === undefined ? defaultPort : Number(portText)
  if (!host || port === undefined || port < 1 || port > 65_535)
    throw new HttpError(400, 'this is not a host with a port')
  return { ...host, port }
}

/** Reads `http://host/path`. For https a program opens a tunnel. Throws an HttpError. */
function parseAbsolute(text: string): { target: Target; authority: string; path: string } {
  const [, authority = '', rest = ''] = /^http:\/\/([^/?#@]+)((?:[/?][^#]*)?)$/i.exec(text) ?? []
  if (!authority) throw new HttpError(400, 'the proxy takes CONNECT, and requests for http:// addresses')
  const path = rest.startsWith('/') ? rest : `/${rest}`
  return { target: parseAuthority(authority, 80), authority, path }
}
