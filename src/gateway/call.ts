import { EVENT_BYTES, partsOf } from '../read/bytes.ts'
import { answerHeaders, upstreamHeaders } from './headers.ts'
import { createMeter, type Meter } from './meter.ts'
import type { Provider } from './providers.ts'
import { createRedactor } from './redact.ts'
import { refusal } from './refusal.ts'
import type { Route } from './routes.ts'
import type { TokenUsage } from './wires.ts'

/** A call that may go. */
export interface Outgoing {
  provider: Provider
  route: Route
  url: string
  /** The caller's. */
  headers: Headers
  body: string | undefined
  /** Told when the provider tells nothing. */
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
}

export interface Call {
  /** The answer, as it comes. Rejects when the call was aborted before it began. */
  answer: Promise<Response>
  /** Ends the call upstream, now. What was seen of it is its outcome. Idempotent. */
  abort(): void
}

const MAX_ERROR_BYTES = 64 * 1024
const nothing: TokenUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/** Sends a call upstream. What it answers passes at the caller's pace: one piece at most is held here. */
export function startCall(outgoing: Outgoing): Call {
  const { provider, route, log } = outgoing
  const upstream = new AbortController()
  let meter: Meter | undefined
  let isOver = false

  function finish(status: Outcome['status'], usage: TokenUsage): void {
    if (isOver) return
    isOver = true
    outgoing.onEnd({ status, usage })
  }

  function abort(): void {
    // It was sent whole: without an answer, the provider bills its input all the same.
    const asked = { ...nothing, inputTokens: outgoing.estimatedInputTokens }
    const ended = meter?.end()
    finish(ended ?? 'aborted', meter?.usage() ?? asked)
    upstream.abort()
  }

  async function send(): Promise<Response> {
    try {
      return await outgoing.fetch(outgoing.url, {
        method: route.method,
        headers: upstreamHeaders(outgoing.headers, provider, route.wire),
        signal: upstream.signal,
        // Another host must not get the key.
        redirect: 'manual',
        ...(outgoing.body !== undefined && { body: outgoing.body }),
      })
    } catch (error) {
      if (isOver) throw error
      finish('failed', nothing)
      log(`${provider.name} cannot be reached${codeOf(error)}`)
      return refusal(route.wire, 502, `The model provider ${provider.name} cannot be reached.`)
    }
  }

  async function answer(): Promise<Response> {
    // Who starts a call must know it before it can end.
    await Promise.resolve()
    const response = await send()
    upstream.signal.throwIfAborted()
    if (isOver) return response
    if (response.ok) return pass(response)
    log(`${provider.name} answered ${response.status}`)
    const text = await scrubbed(response, provider.key).catch(() => '')
    upstream.abort()
    finish('failed', nothing)
    if (response.status < 400) return refusal(route.wire, 502, `${provider.name} answered ${response.status}.`)
    return new Response(text, { status: response.status, headers: answerHeaders(response) })
  }

  function pass(response: Response): Response {
    const { status, body } = response
    const isStream = /^text\/event-stream/i.test(response.headers.get('content-type') ?? '')
    const passed = createMeter(route.wire, isStream, outgoing.estimatedInputTokens)
    meter = passed
    const isAnswer = isStream && route.metered
    if (!body) {
      finish(isAnswer ? 'failed' : 'completed', isAnswer ? passed.usage() : nothing)
      if (isAnswer) return refusal(route.wire, 502, cutShort().message)
      return new Response(null, { status, headers: answerHeaders(response) })
    }
    const reader = body.getReader()
    const redactor = createRedactor(provider.key)
    const stream = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          try {
            for (;;) {
              const { done, value } = await reader.read()
              if (!done) passed.push(value)
              const clean = done ? redactor.end() : redactor.push(value)
              for (const part of partsOf(clean, EVENT_BYTES)) controller.enqueue(part)
              if (clean.byteLength > 0) return
              if (done) break
            }
            conclude(controller)
          } catch (error) {
            conclude(controller, error)
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
      // To close what was cut would give half an answer the look of a whole one.
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

/** A stream that came to its end, or lost its connection, without the event that ends an answer. */
class StreamEnded extends Error {
  readonly code = 'STREAM_ENDED'

  constructor(cause?: unknown) {
    super("The model's stream ended before its reply was complete.", { cause })
  }
}

/** An error's text, bounded. */
async function scrubbed(response: Response, key: string | undefined): Promise<string> {
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
