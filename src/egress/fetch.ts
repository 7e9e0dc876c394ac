import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { ApiError } from '../errors.ts'
import { noBody } from '../http1/body.ts'
import { bodyOf, exchange, type Incoming } from '../http1/exchange.ts'
import { endToEnd, type Header } from '../http1/head.ts'
import { Refusal } from '../http1/refusal.ts'
import type { Target } from './policy.ts'
import { parseHost } from './rules.ts'

const MAX_REDIRECTS = 10

type DialTarget = (target: Target, signal: AbortSignal) => Promise<Socket>

/** A fetch on connections of this dial. Bodies are strings or bytes. Rejects with an ApiError, or the signal's reason. */
export async function fetchBy(dial: DialTarget, url: string, init: RequestInit = {}): Promise<Response> {
  const signal = init.signal ?? new AbortController().signal
  let request = new Request(url, { ...init, signal })
  let body =
    init.body === undefined || init.body === null ? undefined : Buffer.from(await request.clone().arrayBuffer())
  for (let hops = 0; ; hops++) {
    const here = new URL(request.url)
    const response = await once(dial, here, request, body, signal)
    const location = response.headers.get('location')
    const isRedirect = [301, 302, 303, 307, 308].includes(response.status) && location !== null
    if (!isRedirect || init.redirect === 'manual') return response
    await response.body?.cancel()
    const next = URL.parse(location, here.href)
    if (init.redirect === 'error' || !next) throw new ApiError('invalid_request', `${here.host} redirects`)
    if (hops >= MAX_REDIRECTS) throw new ApiError('invalid_request', `${here.host} redirects without end`)
    const becomesGet = response.status === 303 || (response.status < 303 && request.method === 'POST')
    const headers = new Headers(request.headers)
    if (becomesGet) {
      body = undefined
      for (const name of ['content-type', 'content-length', 'content-encoding']) headers.delete(name)
    }
    if (next.origin !== here.origin) for (const name of ['authorization', 'cookie']) headers.delete(name)
    request = new Request(next.href, { method: becomesGet ? 'GET' : request.method, headers, signal })
  }
}

async function once(
  dial: DialTarget,
  url: URL,
  { method, headers }: Request,
  body: Buffer | undefined,
  signal: AbortSignal,
): Promise<Response> {
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
    const upstream = isSecure ? await secure(socket, target) : socket
    const answer = await exchange(upstream, {
      method,
      path: `${url.pathname}${url.search}`,
      headers: [['host', url.host], ...ownHeaders(headers)],
      framing: body ? { kind: 'length', bytes: body.byteLength } : noBody,
      body: (async function* () {
        if (body) yield body
      })(),
    })
    return responseOf(answer, url, socket, signal)
  } catch (error) {
    socket?.destroy()
    signal.throwIfAborted()
    if (error instanceof ApiError) throw error
    const reason = error instanceof Error ? error.message : 'it failed'
    const code = error instanceof Refusal && error.status === 403 ? 'forbidden' : 'invalid_request'
    throw new ApiError(code, `${url.host}: ${reason}`)
  }
}

/** Compressed answers are not asked for: their size says nothing of what they become. */
function ownHeaders(headers: Headers): Header[] {
  const own = endToEnd([...headers].map(([name, value]): Header => [name, value]))
  const kept = own.filter(([name]) => name !== 'host' && name !== 'accept-encoding')
  const defaults: Header[] = [
    ['user-agent', 'threadbox'],
    ['accept', '*/*'],
  ]
  const missing = defaults.filter(([name]) => !kept.some(([each]) => each === name))
  return [...kept, ...missing, ['accept-encoding', 'identity']]
}

async function secure(socket: Socket, { name, address }: Target): Promise<Duplex> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const stream = connectTls({ socket, ALPNProtocols: ['http/1.1'], ...(!address && { servername: name }), host: name })
  stream.once('secureConnect', resolve)
  stream.on('error', reject)
  stream.once('close', () => reject(new Error('the connection was closed')))
  socket.once('close', () => stream.destroy())
  await promise
  return stream
}

function responseOf(answer: Incoming, url: URL, socket: Socket, signal: AbortSignal): Response {
  const { head } = answer
  const headers = endToEnd(head.headers).map(([name, value]): [string, string] => [name, value])
  const response = new Response(bodyOf(answer, socket, signal), {
    status: head.status,
    statusText: head.reason,
    headers,
  })
  return Object.defineProperty(response, 'url', { value: url.href })
}
