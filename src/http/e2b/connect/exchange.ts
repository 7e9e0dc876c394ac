import { movingBody, readBody } from '../../../read/bytes.ts'
import type { JsonObject } from '../../../read/json.ts'
import { takeMemory } from '../../body.ts'
import { takeFlow } from '../../context.ts'
import { type BodyWriter, writtenBody } from '../../written-body.ts'
import { ConnectError, toConnectError } from './error.ts'
import {
  decompress,
  encodingOf,
  endFrameOf,
  frameOf,
  MAX_MESSAGE_BYTES,
  messagesIn,
  parseMessage,
  readFrames,
} from './frames.ts'

/** A procedure with one message in each direction. */
export type Unary = (message: JsonObject) => Promise<object>

/** A procedure that answers with many messages. Its error ends the stream. */
export type Streaming = (message: JsonObject, to: MessageWriter) => Promise<void>

/** A procedure that receives many messages. */
export interface Collecting {
  take(message: JsonObject): Promise<void>
  /** Returns the answer after the last message. */
  end(): object
}

export interface MessageWriter extends Pick<BodyWriter, 'signal' | 'room'> {
  write(message: object): void
  /** Sets the message that is written when nothing else was written for as long as the caller asked for. */
  keepAlive(message: object): void
}

/** How long a client's stream may be silent. */
const STREAM_STILL_MS = 15 * 60_000
const DEFAULT_KEEP_ALIVE_MS = 90_000
const MAX_TIMER_MS = 2 ** 31 - 1

const jsonHeaders = { 'content-type': 'application/json' }
const streamHeaders = { 'content-type': 'application/connect+json' }

const isType = (request: Request, type: string) =>
  (request.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() === type

const refuseType = (accepted: string) => new Response(null, { status: 415, headers: { 'accept-post': accepted } })

/** Answers a procedure with one message in each direction. Never rejects: an error becomes an answer with its HTTP status. */
export async function answerUnary(request: Request, handle: Unary): Promise<Response> {
  if (!isType(request, 'application/json')) return refuseType('application/json')
  try {
    const encoding = encodingOf(request.headers.get('content-encoding'))
    const bytes = await readBody(request, MAX_MESSAGE_BYTES, { take: size => takeMemory(request, size) })
    if (!bytes) throw new ConnectError('resource_exhausted', `The message has more than ${MAX_MESSAGE_BYTES} bytes.`)
    const message = parseMessage(encoding === 'gzip' ? decompress(bytes) : bytes)
    return Response.json(await handle(message), { headers: jsonHeaders })
  } catch (error) {
    return errorAnswer(error)
  }
}

/** The answer of a stream that fails before its first message. */
export const refusedStream = (error: unknown): Response =>
  new Response(Buffer.from(endFrameOf(toConnectError(error))), { headers: streamHeaders })

/** The error answer of a procedure that is not a stream. */
export function errorAnswer(error: unknown): Response {
  const found = toConnectError(error)
  return Response.json(found, { status: found.status, headers: jsonHeaders })
}

/** Calls back when the sandbox of a stream ends, until the result is disposed of. */
export type WatchEnd = (onEnd: () => void) => Disposable

/**
 * Answers a procedure with a stream of messages, at their reader's pace. An error is the last frame. Only when the sandbox has
 * ended, the connection breaks instead.
 */
export async function answerStreaming(request: Request, handle: Streaming, watchEnd: WatchEnd): Promise<Response> {
  if (!isType(request, 'application/connect+json')) return refuseType('application/connect+json')
  const message = await readOnly(request).catch(toConnectError)
  return streamed(request, watchEnd, async (to, lost) => {
    if (message instanceof ConnectError) throw message
    const writer = writerFor(request, to, lost)
    try {
      await handle(message, writer)
    } finally {
      writer[Symbol.dispose]()
    }
  })
}

/** Answers a procedure that takes a stream of messages. */
export async function answerCollecting(
  request: Request,
  collecting: Collecting,
  watchEnd: WatchEnd,
): Promise<Response> {
  if (!isType(request, 'application/connect+json')) return refuseType('application/connect+json')
  return streamed(request, watchEnd, async to => {
    const body = movingBody(request, STREAM_STILL_MS)
    const encoding = encodingOf(request.headers.get('connect-content-encoding'))
    if (body) await readFrames(body, encoding, message => collecting.take(message))
    to.write(frameOf(collecting.end()))
  })
}

/** Makes an answer that ends with the protocol's end frame. */
function streamed(
  request: Request,
  watchEnd: WatchEnd,
  work: (to: BodyWriter, lost: AbortSignal) => Promise<void>,
): Response {
  const lost = new AbortController()
  const body = writtenBody(takeFlow(request), async to => {
    using _watched = watchEnd(() => lost.abort(new Error('the sandbox has ended')))
    await to.room()
    let failure: ConnectError | undefined
    try {
      await work(to, lost.signal)
    } catch (error) {
      failure = toConnectError(error)
    }
    lost.signal.throwIfAborted()
    to.write(endFrameOf(failure))
  })
  return new Response(body, { headers: streamHeaders })
}

/** Reads the single message with which a stream begins. */
async function readOnly(request: Request): Promise<JsonObject> {
  const encoding = encodingOf(request.headers.get('connect-content-encoding'))
  const bytes = await readBody(request, MAX_MESSAGE_BYTES, { take: size => takeMemory(request, size) })
  if (!bytes) throw new ConnectError('resource_exhausted', `The message has more than ${MAX_MESSAGE_BYTES} bytes.`)
  const [message, ...others] = messagesIn(bytes, encoding)
  if (!message || others.length > 0) throw new ConnectError('unimplemented', 'The request must have one message.')
  return message
}

function writerFor(request: Request, to: BodyWriter, lost: AbortSignal): MessageWriter & Disposable {
  const everyMs = keepAliveMs(request)
  let alive: Uint8Array | undefined
  const timer = setInterval(() => {
    if (alive && to.hasRoom) to.write(alive)
  }, everyMs)
  return {
    signal: AbortSignal.any([to.signal, lost]),
    room: () => to.room(),
    write(message) {
      timer.refresh()
      to.write(frameOf(message))
    },
    keepAlive(message) {
      alive = frameOf(message)
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

/** The header is in seconds. */
function keepAliveMs(request: Request): number {
  const seconds = Number(request.headers.get('keepalive-ping-interval') ?? Number.NaN)
  return seconds >= 1 && seconds <= 3600 ? seconds * 1000 : DEFAULT_KEEP_ALIVE_MS
}

/**
 * How long the caller lets the procedure take; undefined when there is no limit. Throws for a text that is not a number of
 * milliseconds.
 */
export function timeoutMsOf(request: Request): number | undefined {
  const given = request.headers.get('connect-timeout-ms')
  if (given === null) return undefined
  if (!/^\d{1,10}$/.test(given))
    throw new ConnectError('invalid_argument', 'Connect-Timeout-Ms: not a number of milliseconds.')
  const timeoutMs = Number(given)
  return timeoutMs > 0 && timeoutMs <= MAX_TIMER_MS ? timeoutMs : undefined
}
