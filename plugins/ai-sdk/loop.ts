import type { SystemModelMessage, ToolSet } from 'ai'
import type { EngineContext, EngineEnd, EngineEvent } from '../../src/plugin-api/index.ts'
import { compact } from './context/compact.ts'
import type { ContextEntry } from './context/context-entries.ts'
import { toolEntries } from './context/history.ts'
import type { CallIds } from './model/call-ids.ts'
import { failed } from './model/failure.ts'
import type { Model } from './model/model.ts'
import { callModel } from './model/model-call.ts'
import { takeSteered } from './steered.ts'
import { sortCalls } from './tools/asking.ts'
import { runCalls } from './tools/run-calls.ts'
import type { Tool, ToolContext } from './tools/tool.ts'

const DEFAULT_MAX_TURNS = 100

/** Longer than any model thinks before its first token, even one that must be loaded. */
const STALL_MS = 300_000

export interface LoopInit {
  model: Model
  system: SystemModelMessage
  /** The tokens of the system prompt and the tools. */
  fixedTokens: number
  /** The conversation, including this turn's prompt. */
  entries: ContextEntry[]
  tools: ReadonlyMap<string, Tool>
  toolSet: ToolSet
  toolContext: Omit<ToolContext, 'progress'>
  permissions: EngineContext['permissions']
  clientTools: EngineContext['clientTools']
  steering: EngineContext['steering']
  callIds: CallIds
  /** The most model calls. */
  maxTurns?: number
}

/**
 * Calls the model and runs its tool calls, again and again, until an answer has no tool call, or one that has to wait. What
 * the user says meanwhile comes before the next call; said during the last answer, it makes that not the last.
 */
export async function* runLoop(init: LoopInit): AsyncGenerator<EngineEvent, EngineEnd> {
  const { model, system, fixedTokens, tools, toolSet, toolContext, callIds, maxTurns = DEFAULT_MAX_TURNS } = init
  const { signal } = toolContext
  const listen = () => takeSteered(init.steering, model.wire)
  let { entries } = init
  for (let turn = 1; turn <= maxTurns; turn++) {
    entries.push(...(yield* listen()))
    entries = yield* compact(entries, { model, fixedTokens, signal })
    if (signal.aborted) return { status: 'cancelled' }
    const messages = entries.map(({ message }) => message)
    const answer = yield* callModel({ model, system, messages, tools: toolSet, signal, stallMs: STALL_MS, callIds })
    if (answer.status === 'ended') return answer.end
    const { message, calls, finishReason } = answer
    const key = calls.at(-1)?.callId
    if (key === undefined) {
      if (finishReason === 'length') {
        const text = 'The answer was cut: it is longer than the model may write at once.'
        yield { type: 'notice', level: 'warn', code: 'answer_cut', text }
      }
      const said = turn < maxTurns ? yield* listen() : []
      const first = said[0]
      if (!first) return { status: 'completed' }
      if (message) entries.push({ message, key: first.key })
      entries.push(...said)
      continue
    }
    const { now, questions, isWaiting } = sortCalls(calls, tools, init)
    yield* questions
    const results = yield* runCalls(now, tools, toolContext)
    if (signal.aborted) return { status: 'cancelled' }
    if (isWaiting) return { status: 'waiting' }
    if (message) entries.push({ message, key })
    entries.push(...toolEntries(results, key, model.wire))
  }
  return failed('max_turns', `The agent stopped after ${maxTurns} model calls (maxTurns). Its work so far is kept.`)
}
