import { type AssistantModelMessage, type ModelMessage, type SystemModelMessage, streamText, type ToolSet } from 'ai'
import { messageOf } from '../../../src/errors.ts'
import type { EngineEnd, EngineEvent } from '../../../src/plugin-api/index.ts'
import { objectOf } from '../../../src/read/json.ts'
import type { CallIds } from './call-ids.ts'
import { asCut, CutStream, isUnfinished } from './cut-stream.ts'
import { explain, failed } from './failure.ts'
import { type Model, withCacheMarks } from './model.ts'
import { isRetryable, MAX_RETRIES, pause, retryWaitMs } from './retry.ts'
import { createWatchdog } from './watchdog.ts'

export interface ModelRequest {
  model: Model
  system: SystemModelMessage
  messages: readonly ModelMessage[]
  tools: ToolSet
  signal: AbortSignal
  /** A call is given up when nothing comes for this long. */
  stallMs: number
  callIds: CallIds
}

/** A tool call of the model. `problem`: why it cannot be carried out. */
export interface ModelToolCall {
  callId: string
  name: string
  input: unknown
  problem?: string
}

export type ModelAnswer =
  | { status: 'answered'; message: AssistantModelMessage | undefined; calls: ModelToolCall[]; finishReason: string }
  | { status: 'ended'; end: EngineEnd }

/**
 * Calls the model. Repeats a failed call, after a wait that a notice announces, as long as no part of an answer was shown.
 * Never throws for a failure.
 */
export async function* callModel(request: ModelRequest): AsyncGenerator<EngineEvent, ModelAnswer> {
  for (let retry = 0; ; retry++) {
    const attempt = yield* attemptCall(request)
    if (attempt.status !== 'broken') return attempt
    if (request.signal.aborted) return { status: 'ended', end: { status: 'cancelled' } }
    const { error, wasShown } = attempt
    if (adapt(request.model, error)) continue
    if (wasShown || retry >= MAX_RETRIES || !isRetryable(error)) return { status: 'ended', end: explain(error) }
    const ms = retryWaitMs(error, retry)
    const text = `${explain(error).error?.message} Trying again in ${Math.ceil(ms / 1000)} s.`
    yield { type: 'notice', level: 'warn', code: 'model_retry', text }
    await pause(ms, request.signal)
  }
}

/** OpenAI refuses reasoning summaries to an organisation that it has not verified. Later calls do not ask for them. */
function adapt({ settings }: Model, error: unknown): boolean {
  const openai = settings.providerOptions?.openai
  if (!openai?.reasoningSummary || !/reasoning summar/i.test(String(error))) return false
  delete openai.reasoningSummary
  return true
}

type Attempt = ModelAnswer | { status: 'broken'; error: unknown; wasShown: boolean }

async function* attemptCall(request: ModelRequest): AsyncGenerator<EngineEvent, Attempt> {
  const { model, system, messages, tools, callIds } = request
  const watchdog = createWatchdog(request.signal, request.stallMs)
  const calls: ModelToolCall[] = []
  let wasShown = false
  let finishReason = 'other'
  let rawReason: string | undefined
  const broken = (error: unknown): Attempt => ({ status: 'broken', error: asCut(error), wasShown })
  callIds.beginAnswer()
  try {
    const result = streamText({
      model: model.languageModel,
      ...model.settings,
      instructions: system,
      messages: withCacheMarks(model, messages),
      tools,
      maxRetries: 0,
      abortSignal: watchdog.signal,
      onError: () => {},
    })
    for await (const part of result.stream) {
      watchdog.reset()
      switch (part.type) {
        case 'text-delta':
        case 'reasoning-delta':
          if (!part.text) break
          wasShown = true
          yield { type: part.type === 'text-delta' ? 'text' : 'reasoning', id: part.id, delta: part.text }
          break
        case 'text-end':
        case 'reasoning-end':
          yield { type: 'part-end', id: part.id }
          break
        case 'tool-input-start':
          wasShown = true
          yield { type: 'tool-input', callId: callIds.toOwn(part.id), name: part.toolName, delta: '' }
          break
        case 'tool-input-delta':
          yield { type: 'tool-input', callId: callIds.toOwn(part.id), name: '', delta: part.delta }
          break
        case 'tool-call': {
          wasShown = true
          const { toolName: name, invalid, error } = part
          const callId = callIds.toOwn(part.toolCallId)
          const call = { callId, name, input: objectOf(part.input) ?? {} }
          calls.push(invalid ? { ...call, problem: describeProblem(error) } : call)
          yield { type: 'tool-call', ...call }
          break
        }
        case 'finish-step':
          finishReason = part.finishReason
          rawReason = part.rawFinishReason
          break
        case 'error':
          return broken(part.error)
        case 'abort':
          if (watchdog.hasTimedOut()) return broken(watchdog.signal.reason)
          return { status: 'ended', end: { status: 'cancelled' } }
      }
    }
    if (request.signal.aborted) return { status: 'ended', end: { status: 'cancelled' } }
    if (finishReason === 'content-filter') {
      return { status: 'ended', end: failed('model_refused', 'The provider withheld the answer (content filter).') }
    }
    if (isUnfinished(finishReason, rawReason)) return broken(new CutStream())
    if (finishReason === 'error') return broken(new Error('The provider reports an error.'))
    const { messages: answers } = await result.response
    const message = answers.find(answer => answer.role === 'assistant')
    return { status: 'answered', message: message && callIds.rename(message), calls, finishReason }
  } catch (error) {
    if (request.signal.aborted) return { status: 'ended', end: { status: 'cancelled' } }
    return broken(error)
  } finally {
    watchdog.stop()
  }
}

const MAX_PROBLEM_CHARS = 2000

const describeProblem = (error: unknown): string =>
  `InputValidationError: ${messageOf(error).slice(0, MAX_PROBLEM_CHARS)}`
