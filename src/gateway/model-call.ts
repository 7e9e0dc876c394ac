import { EVENT_BYTES, partsOf } from '../read/bytes.ts'
import { checkNesting } from '../read/nesting.ts'
import { errorResponse } from './error-response.ts'
import { answerHeaders, upstreamHeaders } from './headers.ts'
import { createMeter, type Meter } from './meter.ts'
import type { Provider } from './providers.ts'
import { createRedactor } from './redact.ts'
import type { Route } from './routes.ts'
import type { TokenUsage } from './usage-readers.ts'

/** A call that was admitted. */
export interface ModelCallRequest {
  provider: Provider
  route: Route
  url: string
  /** The caller's headers. */
  headers: Headers
  /** The call's place in a trace. It replaces the place that the caller gives. */
  traceparent?: string | undefined
  body: string | undefined
  /** Counts when the provider reports no usage. */
  estimatedInputTokens: number
  fetch: typeof fetch
  /** Says one line to the operator. Never a secret. */
  log(line: string): void
  /** Called once, before the caller sees the end. */
  onEnd(outcome: Outcome): void
}

export interface Outcome {
  status: 'completed' | 'failed' | 'aborted'
  usage: TokenUsage
  /** The time of the first piece of a streamed answer, by `performance.now()`. */
  firstChunkAtMs?: number
}

export interface ModelCall {
  /** The answer, as it comes. Rejects when the call was aborted before it began. */
  answer: Promise<Response>
  /** Ends the call upstream at once. Its outcome is what has passed so far. Idempotent. */
  abort(): void
}

const MAX_ERROR_BYTES = 64 * 1024
const nothing: TokenUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/**
 * Sends a call upstream. The answer passes at the caller's pace: at most one piece is held here.
 *
 * Over 100 lines: one call from its first byte to its record, with all the ways in which it can end.
 */
export function startModelCall(request: ModelCallRequest): ModelCall {
  const { provider, route, log } = request
  const upstream = new AbortController()
  let meter: Meter | undefined
  let firstChunkAtMs: number | undefined
  let isOver = false

  function finish(status: Outcome['status'], usage: TokenUsage): void {
    if (isOver) return
    isOver = true
    request.onEnd({ status, usage, ...(firstChunkAtMs !== undefined && { firstChunkAtMs }) })
  }

  function abort(): void {
    // The request was sent, so the provider bills its input even if no answer came.
    const inputOnly = { ...nothing, inputTokens: request.estimatedInputTokens }
    const ended = meter?.end()
    finish(ended ?? 'aborted', meter?.usage() ?? inputOnly)
    upstream.abort()
  }

  async function send(): Promise<Response> {
    try {
      return await request.fetch(request.url, {
        method: route.method,
        headers: upstreamHeaders(request.headers, provider, route.wire, request.traceparent),
        signal: upstream.signal,
        // A redirect must not take the key to another host.
        redirect: 'manual',
        ...(request.body !== undefined && { body: request.body }),
      })
    } catch (error) {
      if (isOver) throw error
      finish('failed', nothing)
      log(`${provider.name} cannot be reached${codeOf(error)}`)
      return errorResponse(route.wire, 502, `The model provider ${provider.name} cannot be reached.`)
    }
  }

  async function answer(): Promise<Response> {
    // One microtask later, so that the caller has the call before onEnd can be called.
    await Promise.resolve()
    const response = await send()
    upstream.signal.throwIfAborted()
    if (isOver) return response
    if (response.ok) return pass(response)
    log(`${provider.name} answered ${response.status}`)
    const text = await readError(response, provider.key).catch(() => '')
    upstream.abort()
    finish('failed', nothing)
    if (response.status < 400) return errorResponse(route.wire, 502, `${provider.name} answered ${response.status}.`)
    return new Response(text, { status: response.status, headers: answerHeaders(response) })
  }

  function pass(response: Response): Response {
    const { status, body } = response
    const isStream = /^text\/event-stream/i.test(response.headers.get('content-type') ?? '')
    const passed = createMeter(route.wire, isStream, request.estimatedInputTokens)
    meter = passed
    const isAnswer = isStream && route.metered
    if (!body) {
      finish(isAnswer ? 'failed' : 'completed', isAnswer ? passed.usage() : nothing)
      if (isAnswer) return errorResponse(route.wire, 502, cutShort().message)
      return new Response(null, { status, headers: answerHeaders(response) })
    }
    const reader = body.getReader()
    const redactor = createRedactor(provider.key)
    const isFlat = checkNesting(response.headers.get('content-type'))
    const stream = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          try {
            for (;;) {
              const { done, value } = await reader.read()
              if (!done && !isFlat(value)) throw new Error('the model answers with JSON that is nested too deep')
              if (!done) passed.push(value)
              if (isStream && !done) firstChunkAtMs ??= performance.now()
              const clean = done ? redactor.end() : redactor.push(value)
              for (const part of partsOf(clean, EVENT_BYTES)) controller.enqueue(part)
              if (clean.byteLength > 0) return
              if (done) break
            }
            conclude(controller)
          } catch (error) {
            conclude(controller, error)
            upstream.abort()
          }
        },
        cancel: abort,
      },
      { highWaterMark: 0 },
    )
    return new Response(stream, { status, headers: answerHeaders(response) })

    function conclude(controller: ReadableStreamDefaultController<Uint8Array>, cause?: unknown): void {
      const wasOver = isOver
      const end = passed.end()
      finish(end ?? 'failed', passed.usage())
      // Closing a stream that was cut would make half an answer look whole.
      const isCut = isAnswer && end === undefined && !wasOver
      if (isCut) controller.error(cutShort(cause))
      else if (end === 'completed' || cause === undefined) controller.close()
      else controller.error(cause)
    }
  }

  function cutShort(cause?: unknown): StreamEnded {
    log(`${provider.name} ended its stream before the reply was complete${codeOf(cause)}`)
    return new StreamEnded(cause)
  }

  return { answer: answer(), abort }
}

/** The stream ended, or lost its connection, before the event that ends an answer. */
class StreamEnded extends Error {
  readonly code = 'STREAM_ENDED'

  constructor(cause?: unknown) {
    super("The model's stream ended before its reply was complete.", { cause })
  }
}

/** Reads an error's text, at most MAX_ERROR_BYTES, without the key. */
async function readError(response: Response, key: string | undefined): Promise<string> {
  const redactor = createRedactor(key)
  const pieces: Uint8Array[] = []
  let byteLength = 0
  for await (const chunk of response.body ?? []) {
    const clean = redactor.push(chunk)
    pieces.push(clean)
    byteLength += clean.byteLength
    if (byteLength > MAX_ERROR_BYTES) return Buffer.concat(pieces).toString('utf8')
  }
  return Buffer.concat([...pieces, redactor.end()]).toString('utf8')
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? `: ${error.code}` : ''
