import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { write } from '../../http1/byte-source.ts'
import { endToEnd, type Header } from '../../http1/head.ts'
import { HttpError } from '../../http1/http-error.ts'
import { formKind, type InjectedRequest, injectInForm, MAX_FORM_BYTES } from './inject.ts'
import { assertAuthority, authorityOf, decoded, type PreparedRequest, prepare, type Relay, scrubbed } from './relay.ts'

/** How many requests one connection may carry at once. */
const MAX_STREAMS = 100
const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM, NGHTTP2_FLAG_END_STREAM } = constants

/** Carries the requests of one connection, each as a stream of its own. Resolves when either connection has ended. */
export async function relayHttp2(secure: TLSSocket, server: TLSSocket | undefined, relay: Relay): Promise<void> {
  const ended = Promise.withResolvers<void>()
  const end = () => ended.resolve()
  let upstream: ClientHttp2Session | undefined
  if (server) {
    upstream = connect(`https://${authorityOf(relay.target)}`, {
      createConnection: () => server,
      settings: { enablePush: false },
    })
    upstream
      .on('error', end)
      .on('close', end)
      .on('goaway', () => downstream?.close())
  }
  let downstream: ServerHttp2Session | undefined
  const listener = createServer({ settings: { maxConcurrentStreams: MAX_STREAMS } })
  listener.on('session', session => {
    downstream = session
    session.on('error', end).on('close', end)
  })
  listener.on('sessionError', end)
  let open = 0
  listener.on('stream', (stream: ServerHttp2Stream, headers, flags) => {
    stream.on('error', () => {})
    if (open >= MAX_STREAMS) return stream.close(NGHTTP2_REFUSED_STREAM)
    open++
    stream.once('close', () => open--)
    answer(stream, headers, (flags & NGHTTP2_FLAG_END_STREAM) !== 0, upstream, relay).catch(error =>
      refuse(stream, relay, error),
    )
  })
  listener.emit('connection', secure)
  secure.once('close', end)
  await ended.promise
  upstream?.destroy()
  downstream?.close()
}

async function answer(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  isEmpty: boolean,
  upstream: ClientHttp2Session | undefined,
  relay: Relay,
): Promise<void> {
  const asked = readRequest(relay, headers)
  if (!upstream || upstream.closed || upstream.destroyed)
    throw new HttpError(502, relay.failure ?? 'it closed the connection')
  let prepared = prepare(relay, asked)
  let trailers: OutgoingHttpHeaders = {}
  stream.on('trailers', fields => (trailers = Object.fromEntries(plainHeaders(fields))))
  const body = isEmpty
    ? undefined
    : await withForm(stream, prepared.request, () => {
        prepared = prepare(relay, asked)
        return prepared.request
      })
  prepared.report()
  const { request } = prepared
  const up = upstream.request(
    {
      ...grouped(body?.length === undefined ? request.headers : withLength(request.headers, body.length)),
      ...{
        ':method': request.method,
        ':scheme': 'https',
        ':authority': authorityOf(relay.target),
        ':path': request.path,
      },
    },
    { endStream: !body, ...(body && { waitForTrailers: true }) },
  )
  up.on('wantTrailers', () => up.sendTrailers(trailers))
  // When one side cancels a stream, the other one learns why.
  stream.once('close', () => up.close(stream.rstCode === 0 ? NGHTTP2_CANCEL : stream.rstCode))
  const answered = carryAnswer(stream, up, relay, prepared)
  if (body) {
    send(body.pieces, up, relay).catch(() => up.close(NGHTTP2_CANCEL))
  }
  await answered
}

/** Reads the request's head. Throws an HttpError when it is for another host, or is not a plain request. */
function readRequest({ target }: Relay, headers: IncomingHttpHeaders) {
  const { ':method': method = '', ':path': path = '', ':scheme': scheme, ':authority': authority, host } = headers
  if (authority === undefined && host === undefined) throw new HttpError(400, 'it names no host')
  for (const each of [authority, host]) if (each !== undefined) assertAuthority(target, each)
  const isPath = /^\/[\x21-\x7e]*$/.test(path) || (path === '*' && method === 'OPTIONS')
  if (scheme !== 'https' || !isPath || !/^[A-Z][A-Z-]{0,31}$/.test(method) || method === 'CONNECT') {
    throw new HttpError(400, 'the request is not valid')
  }
  return { method, path, headers: plainHeaders(headers).filter(([name]) => name !== 'host') }
}

const MAX_FIELDS = 1000

/** The fields of a head without those about one connection. `te` has only one possible value here, which gRPC needs. */
function plainHeaders(headers: IncomingHttpHeaders): Header[] {
  const all = Object.entries(headers).flatMap(([name, value]): Header[] => {
    if (name.startsWith(':') || value === undefined) return []
    return [value].flat().map(each => [name, each])
  })
  if (all.length > MAX_FIELDS) throw new HttpError(431, `more than ${MAX_FIELDS} headers`)
  const length = all.filter(([name]) => name === 'content-length')
  const te = all.filter(([name, value]) => name === 'te' && value === 'trailers')
  const announced = all.filter(([name]) => name === 'trailer')
  return [...endToEnd(all), ...length, ...te, ...announced]
}

/** Headers for sending on: a header that came several times has a list. */
function grouped(headers: readonly Header[]): OutgoingHttpHeaders {
  const names = new Map<string, string[]>()
  for (const [name, value] of headers) names.set(name, [...(names.get(name) ?? []), value])
  return Object.fromEntries([...names].map(([name, values]) => [name, values.length === 1 ? values[0] : values]))
}

const withLength = (headers: readonly Header[], length: number): Header[] => [
  ...headers.filter(([name]) => name !== 'content-length'),
  ['content-length', String(length)],
]

/**
 * A form that may contain placeholders is read completely first; everything else passes as it comes. A program takes its time with a
 * form, so `again` gives the request with the secrets that are bound once it is read.
 */
async function withForm(
  stream: ServerHttp2Stream,
  request: InjectedRequest,
  again: () => InjectedRequest,
): Promise<{ pieces: AsyncIterable<Buffer>; length?: number }> {
  const kind = request.replacements.length > 0 ? formKind(request.headers) : undefined
  if (!kind) return { pieces: stream }
  const iterator: AsyncIterator<Buffer> = stream.iterator({ destroyOnReturn: false })
  const read: Buffer[] = []
  let bytes = 0
  while (bytes <= MAX_FORM_BYTES) {
    const next = await iterator.next()
    if (next.done) {
      const form = injectInForm(Buffer.concat(read), kind, again())
      return { pieces: chain([form]), length: form.byteLength }
    }
    read.push(next.value)
    bytes += next.value.byteLength
  }
  again()
  return { pieces: chain(read, iterator) }
}

async function* chain(read: readonly Buffer[], rest?: AsyncIterator<Buffer>): AsyncGenerator<Buffer, void> {
  yield* read
  for (let next = await rest?.next(); next && !next.done; next = await rest?.next()) yield next.value
}

async function send(pieces: AsyncIterable<Buffer>, to: Duplex, relay: Relay): Promise<void> {
  for await (const piece of pieces) {
    relay.moved()
    if (piece.byteLength > 0) await write(to, piece)
  }
  to.end()
}

async function carryAnswer(
  stream: ServerHttp2Stream,
  up: ClientHttp2Stream,
  relay: Relay,
  { scrubber }: PreparedRequest,
): Promise<void> {
  const clean = (headers: IncomingHttpHeaders) => plainHeaders(headers).map(scrubber.header)
  const { promise, resolve, reject } = Promise.withResolvers<{ headers: IncomingHttpHeaders; isEmpty: boolean }>()
  let trailers: OutgoingHttpHeaders = {}
  up.on('response', (headers, flags) => resolve({ headers, isEmpty: (flags & NGHTTP2_FLAG_END_STREAM) !== 0 }))
  up.on('headers', headers => {
    if (!stream.headersSent) stream.additionalHeaders({ ':status': headers[':status'], ...grouped(clean(headers)) })
  })
  up.on('trailers', fields => (trailers = grouped(clean(fields))))
  up.on('error', reject)
  up.once('close', () => reject(new HttpError(502, 'it broke off')))
  const { headers, isEmpty } = await promise
  const status = Number(headers[':status'])
  const kept = clean(headers)
  if (isEmpty) return stream.respond({ ':status': status, ...grouped(kept) }, { endStream: true })
  const plain = await decoded(status, kept, up)
  stream.respond({ ':status': status, ...grouped(plain?.headers ?? kept) }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers(trailers))
  try {
    for await (const piece of scrubbed(plain?.body ?? up, { scrubber, moved: relay.moved, status })) {
      await write(stream, piece)
      await relay.hasRoom()
    }
    if (up.rstCode !== 0) throw new Error('it broke off')
    stream.end()
  } catch {
    stream.close(up.rstCode || NGHTTP2_INTERNAL_ERROR)
  }
}

/** Answers with an error text where that is still possible. */
function refuse(stream: ServerHttp2Stream, { target }: Relay, error: unknown): void {
  if (stream.destroyed || stream.closed) return
  if (stream.headersSent || !(error instanceof HttpError)) {
    stream.close(NGHTTP2_INTERNAL_ERROR)
    return
  }
  stream.respond({ ':status': error.status, 'content-type': 'text/plain; charset=utf-8' })
  stream.end(`threadbox: ${authorityOf(target)}: ${error.message}\n`)
}
