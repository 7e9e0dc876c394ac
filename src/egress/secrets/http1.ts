import type { Duplex } from 'node:stream'
import { beforeTimeout } from '../../async/timeout.ts'
import { type Framing, lastChunk, readBody, requestFraming, writeChunk } from '../../http1/body.ts'
import { type ByteSource, write } from '../../http1/byte-source.ts'
import { type Answer, readAnswer } from '../../http1/exchange.ts'
import {
  endToEnd,
  formatHead,
  getValues,
  type Header,
  isKept,
  MAX_HEAD_BYTES,
  parseRequest,
  type RequestHead,
} from '../../http1/head.ts'
import { HttpError } from '../../http1/http-error.ts'
import type { TunnelEnd } from '../../http1/tunnel.ts'
import { finish } from '../proxy.ts'
import { answerPlainly, type ProxyClient, sendAnswer } from '../proxy-client.ts'
import { formKind, type InjectedRequest, injectInForm, MAX_FORM_BYTES } from './inject.ts'
import { assertAuthority, authorityOf, decoded, type PreparedRequest, prepare, type Relay, scrubbed } from './relay.ts'

/** How long a head may take from its first byte, and how long a connection waits for its next request. */
const HEAD_MS = 30_000
const KEPT_MS = 5 * 60_000

/** Carries requests one after the other, until one side ends. Rejects when a side breaks off. */
export async function relayHttp1(client: ProxyClient, server: TunnelEnd | undefined, relay: Relay): Promise<void> {
  let isIdle = false
  const end = () => {
    server?.socket.destroy()
    client.socket.destroy()
  }
  /** The answers before are still being sent to the program. */
  const endLater = () => {
    server?.socket.destroy()
    void finish(client.socket).then(end)
  }
  const onGone = () => void server?.socket.destroy()
  client.signal.addEventListener('abort', onGone, { once: true })
  try {
    for (let goesOn = true; goesOn; ) {
      isIdle = true
      // When the server sends anything unasked, even its end, the connection ends: the next request would get it as its answer.
      server?.source.isEnded().then(() => isIdle && endLater(), endLater)
      const bytes = await readHead(client.source)
      isIdle = false
      if (!bytes) break
      goesOn = await answerOne(client, server, relay, bytes)
    }
    await finish(client.socket)
  } finally {
    client.signal.removeEventListener('abort', onGone)
    end()
  }
}

async function readHead(source: ByteSource): Promise<(() => Promise<Buffer | undefined>) | undefined> {
  const first = await beforeTimeout(KEPT_MS, source.read(), () => undefined)
  if (!first) return undefined
  source.unread(first)
  return () =>
    beforeTimeout(HEAD_MS, source.readThrough('\r\n\r\n', MAX_HEAD_BYTES), () => {
      throw new HttpError(408, 'the request took too long')
    })
}

/** Returns false when the connection must not carry another request. */
async function answerOne(
  client: ProxyClient,
  server: TunnelEnd | undefined,
  relay: Relay,
  readRest: () => Promise<Buffer | undefined>,
): Promise<boolean> {
  let request: RequestHead | undefined
  try {
    const bytes = await readRest()
    if (!bytes) return false
    request = parseRequest(bytes)
    for (const host of getValues(request.headers, 'host')) assertAuthority(relay.target, host)
    const isAsterisk = request.target === '*' && request.method === 'OPTIONS'
    if (!isAsterisk && (!request.target.startsWith('/') || request.method === 'CONNECT')) {
      throw new HttpError(400, 'the request line needs a path')
    }
    const framing = requestFraming(request)
    if (!server) throw new HttpError(502, relay.failure ?? 'it cannot be reached')
    return await carry(client, server, relay, request, framing)
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    const message = `${authorityOf(relay.target)}: ${error.message}`
    await answerPlainly(client, error.status, message, request?.method === 'HEAD')
    return false
  }
}

async function carry(
  client: ProxyClient,
  server: TunnelEnd,
  relay: Relay,
  asked: RequestHead,
  framing: Framing,
): Promise<boolean> {
  const isWebSocket = asksForWebSocket(asked)
  if (isWebSocket && hasBody(framing)) throw new HttpError(400, 'a request for a WebSocket has no body')
  const headers = endToEnd(asked.headers).filter(([name]) => name !== 'host')
  const prepareNow = () => prepare(relay, { method: asked.method, path: asked.target, headers })
  let prepared = prepareNow()
  const outgoing = await withBody(client, relay, prepared.request, framing, () => {
    prepared = prepareNow()
    return prepared.request
  })
  prepared.report()
  const { request } = prepared
  const all: Header[] = [['host', authorityOf(relay.target)], ...outgoing.headers]
  if (isWebSocket) all.push(['connection', 'Upgrade'], ['upgrade', 'websocket'])
  if (outgoing.framing.kind === 'chunked') all.push(['transfer-encoding', 'chunked'])
  if (
    outgoing.framing.kind === 'length' &&
    (outgoing.framing.bytes > 0 || getValues(asked.headers, 'content-length').length > 0)
  ) {
    all.push(['content-length', String(outgoing.framing.bytes)])
  }
  await write(server.socket, Buffer.from(formatHead(`${request.method} ${request.path} HTTP/1.1`, all), 'latin1'))

  // The answer is read meanwhile, because a server may answer before it has read the whole body.
  let isSent = false
  let unsent: unknown
  const watchClient = () => {
    isSent = true
    // A program that is killed ends its side; without this that would be noticed only with the answer's next bytes.
    const gone = () => client.socket.destroy()
    if (!isWebSocket) client.source.isEnded().then(ended => ended && gone(), gone)
  }
  outgoing.send(server.socket).then(watchClient, error => {
    unsent = error
    server.socket.destroy()
  })
  let trailers: Header[] = []
  const answer = await readAnswer(
    server.source,
    request.method,
    async ({ status, reason, headers: interim }) => {
      if (asked.version === '1.0') return
      await write(client.socket, toHead(status, reason, endToEnd(interim), prepared))
    },
    fields => (trailers = fields.filter(([name]) => !framingFields.has(name)).map(prepared.scrubber.header)),
  ).catch(error => {
    throw unsent instanceof HttpError ? unsent : error
  })
  if (answer.head.status === 101) {
    await carryWebSocket(client, server, relay, answer, isWebSocket, prepared)
    return false
  }
  return (await send(client, relay, asked, answer, prepared, () => trailers)) && isSent
}

/** Fields about a message's framing or its sender count only in its head, not in trailers. */
const framingFields = new Set(['host', 'content-length', 'transfer-encoding', 'authorization', 'cookie', 'set-cookie'])

const hasBody = (framing: Framing) => framing.kind === 'chunked' || (framing.kind === 'length' && framing.bytes > 0)

const listWords = (values: readonly string[]) =>
  values.flatMap(value => value.split(',')).map(word => word.trim().toLowerCase())

function asksForWebSocket({ method, version, headers }: RequestHead): boolean {
  const [upgrades, words] = [getValues(headers, 'upgrade'), listWords(getValues(headers, 'connection'))]
  return (
    method === 'GET' && version === '1.1' && upgrades.join().toLowerCase() === 'websocket' && words.includes('upgrade')
  )
}

interface Outgoing {
  headers: readonly Header[]
  framing: Framing
  send(to: Duplex): Promise<void>
}

/**
 * Passes the request's body on. A form that may contain placeholders is read completely first; everything else passes as it
 * comes. A program takes its time with a form, so `again` gives the request with the secrets that are bound once it is read.
 */
async function withBody(
  client: ProxyClient,
  relay: Relay,
  request: InjectedRequest,
  framing: Framing,
  again: () => InjectedRequest,
): Promise<Outgoing> {
  let trailers: Header[] = []
  const pieces = readBody(client.source, framing, fields => {
    trailers = fields.filter(([name]) => !framingFields.has(name))
  })
  const kind = request.replacements.length > 0 && hasBody(framing) ? formKind(request.headers) : undefined
  const mayFit = framing.kind !== 'length' || framing.bytes <= MAX_FORM_BYTES
  const read: Buffer[] = []
  let { headers } = request
  if (kind && mayFit) {
    if (headers.some(([name]) => name === 'expect')) await write(client.socket, 'HTTP/1.1 100 Continue\r\n\r\n')
    let isWhole = false
    for (let bytes = 0; !isWhole && bytes <= MAX_FORM_BYTES; ) {
      const next = await pieces.next()
      if (next.done) isWhole = true
      else {
        read.push(next.value)
        bytes += next.value.byteLength
      }
    }
    const now = again()
    headers = now.headers.filter(([name]) => name !== 'expect')
    if (isWhole) {
      const form = injectInForm(Buffer.concat(read), kind, now)
      return { headers, framing: { kind: 'length', bytes: form.byteLength }, send: to => write(to, form) }
    }
  }
  const isChunked = framing.kind === 'chunked'
  return {
    headers,
    framing,
    async send(to) {
      const sendPiece = async (piece: Buffer) => {
        relay.moved()
        if (piece.byteLength > 0) await (isChunked ? writeChunk : write)(to, piece)
      }
      for (const piece of read) await sendPiece(piece)
      for await (const piece of pieces) await sendPiece(piece)
      if (isChunked) await write(to, lastChunk(trailers))
    },
  }
}

const toHead = (status: number, reason: string, headers: readonly Header[], { scrubber }: PreparedRequest) =>
  Buffer.from(formatHead(`HTTP/1.1 ${status} ${scrubber.text(reason)}`, headers.map(scrubber.header)), 'latin1')

/** Sends the answer on. Returns whether the connections can carry another request. */
async function send(
  client: ProxyClient,
  relay: Relay,
  asked: RequestHead,
  { head, length, body }: Answer,
  { scrubber }: PreparedRequest,
  trailers: () => readonly Header[],
): Promise<boolean> {
  const kept = endToEnd(head.headers)
  if (length === 'none')
    for (const value of getValues(head.headers, 'content-length')) kept.push(['content-length', value])
  const plain = length === 'none' ? undefined : await decoded(head.status, kept, body)
  const isWhole = length !== undefined || getValues(head.headers, 'transfer-encoding').length > 0
  const isServerKept =
    isWhole && head.version === '1.1' && !listWords(getValues(head.headers, 'connection')).includes('close')
  const clean = {
    status: head.status,
    reason: scrubber.text(head.reason),
    headers: (plain?.headers ?? kept).map(scrubber.header),
    length: plain ? undefined : length,
    trailers,
  }
  const pieces = scrubbed(plain?.body ?? body, { scrubber, moved: relay.moved, status: head.status })
  return await sendAnswer(client, asked, clean, pieces, isServerKept && isKept(asked))
}

/** Carries both ways what follows an upgrade. The server's frames keep their lengths. */
async function carryWebSocket(
  client: ProxyClient,
  server: TunnelEnd,
  relay: Relay,
  { head }: Answer,
  isAsked: boolean,
  prepared: PreparedRequest,
): Promise<void> {
  if (!isAsked || getValues(head.headers, 'upgrade').join().toLowerCase() !== 'websocket') {
    throw new HttpError(502, 'it changed the protocol unasked')
  }
  const headers: Header[] = [...endToEnd(head.headers), ['connection', 'Upgrade'], ['upgrade', 'websocket']]
  await write(client.socket, toHead(101, head.reason, headers, prepared))
  const pass = async (pieces: AsyncIterable<Buffer>, to: Duplex) => {
    for await (const piece of pieces) await write(to, piece)
    to.end()
  }
  const up = async function* () {
    for (let piece = await client.source.read(); piece; piece = await client.source.read()) {
      relay.moved()
      yield piece
    }
  }
  const down = scrubbed(readBody(server.source, { kind: 'until-close' }), {
    scrubber: prepared.scrubber,
    moved: relay.moved,
  })
  await Promise.all([pass(up(), server.socket), pass(down, client.socket)])
}
