import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { ApiError } from '../errors.ts'
import { noBody } from '../http1/body.ts'
import { type ExchangeAnswer, exchange, streamBody } from '../http1/exchange.ts'
import { endToEnd, type Header } from '../http1/head.ts'
import { HttpError } from '../http1/http-error.ts'
import type { Target } from './policy.ts'
import { parseHost } from './rules.ts'

const MAX_REDIRECTS = 10

type DialTarget = (target: Target, signal: AbortSignal) => Promise<Socket>

/** One request of a fetch: the first, or the one that a redirect leads to. */
interface Hop {
  url: URL
  method: string
  headers: Headers
  body: Buffer | undefined
}

/** A fetch on connections of this dial. Bodies are strings or bytes. Rejects with an ApiError, or the signal's reason. */
export async function fetchBy(dial: DialTarget, url: string, init: RequestInit = {}): Promise<Response> {
  const signal = init.signal ?? new AbortController().signal
  const request = new Request(url, { ...init, signal })
  const hasBody = init.body !== undefined && init.body !== null
  const body = hasBody ? Buffer.from(await request.arrayBuffer()) : undefined
  let hop: Hop = { url: new URL(request.url), method: request.method, headers: request.headers, body }
  for (let redirects = 0; ; redirects++) {
    const response = await fetchHop(dial, hop, signal)
    const location = response.headers.get('location')
    const isRedirect = [301, 302, 303, 307, 308].includes(response.status) && location !== null
    if (!isRedirect || init.redirect === 'manual') return response
    await response.body?.cancel()
    const next = URL.parse(location, hop.url.href)
    if (init.redirect === 'error' || !next) throw new ApiError('invalid_request', `${hop.url.host} redirects`)
    if (redirects >= MAX_REDIRECTS) throw new ApiError('invalid_request', `${hop.url.host} redirects without end`)
    hop = redirected(hop, response.status, next)
  }
}

/** The request that a browser would send next: without the body after most statuses, without credentials to others. */
function redirected(from: Hop, status: number, url: URL): Hop {
  const becomesGet = status === 303 || (status < 303 && from.method === 'POST')
  const dropped = [
    ...(becomesGet ? ['content-type', 'content-length', 'content-encoding'] : []),
    ...(url.origin === from.url.origin ? [] : ['authorization', 'cookie']),
  ]
  const headers = new Headers([...from.headers].filter(([name]) => !dropped.includes(name)))
  return { url, method: becomesGet ? 'GET' : from.method, headers, body: becomesGet ? undefined : from.body }
}

async function fetchHop(dial: DialTarget, { url, method, headers, body }: Hop, signal: AbortSignal): Promise<Response> {
  const isSecure = url.protocol === 'https:'
  const host = parseHost(url.hostname)
  if (!host || !(isSecure || url.protocol === 'http:')) {
    throw new ApiError('invalid_request', 'url: must be http:// or https:// with a host')
  }
  const target = { ...host, port: Number(url.port || (isSecure ? 443 : 80)) }
  let socket: Socket | undefined
  try {
    socket = await dial(target, signal)
    const end = socket
    const abort = () => end.destroy()
    signal.addEventListener('abort', abort, { once: true })
    socket.once('close', () => signal.removeEventListener('abort', abort))
    const upstream = isSecure ? await startTls(socket, target) : socket
    const answer = await exchange(upstream, {
      method,
      path: `${url.pathname}${url.search}`,
      headers: [['host', url.host], ...requestHeaders(headers)],
      framing: body ? { kind: 'length', bytes: body.byteLength } : noBody,
      body: (async function* () {
        if (body) yield body
      })(),
    })
    return createResponse(answer, url, socket, signal)
  } catch (error) {
    socket?.destroy()
    signal.throwIfAborted()
    if (error instanceof ApiError) throw error
    const reason = error instanceof Error ? error.message : 'it failed'
    const code = error instanceof HttpError && error.status === 403 ? 'forbidden' : 'invalid_request'
    throw new ApiError(code, `${url.host}: ${reason}`)
  }
}

/** Asks for no compression: a compressed answer's size does not bound what it expands to. */
function requestHeaders(headers: Headers): Header[] {
  const own = endToEnd([...headers].map(([name, value]): Header => [name, value]))
  const kept = own.filter(([name]) => name !== 'host' && name !== 'accept-encoding')
  const defaults: Header[] = [
    ['user-agent', 'threadbox'],
    ['accept', '*/*'],
  ]
  const missing = defaults.filter(([name]) => !kept.some(([each]) => each === name))
  return [...kept, ...missing, ['accept-encoding', 'identity']]
}

async function startTls(socket: Socket, { name, address }: Target): Promise<Duplex> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const stream = connectTls({ socket, ALPNProtocols: ['http/1.1'], ...(!address && { servername: name }), host: name })
  stream.once('secureConnect', resolve)
  stream.on('error', reject)
  stream.once('close', () => reject(new Error('the connection was closed')))
  socket.once('close', () => stream.destroy())
  await promise
  return stream
}

function createResponse(answer: ExchangeAnswer, url: URL, socket: Socket, signal: AbortSignal): Response {
  const { head } = answer
  const headers = endToEnd(head.headers).map(([name, value]): [string, string] => [name, value])
  const response = new Response(streamBody(answer, socket, signal), {
    status: head.status,
    statusText: head.reason,
    headers,
  })
  return Object.defineProperty(response, 'url', { value: url.href })
}
