import type { EngineContext, EngineEvent } from '../../../src/plugin-api/index.ts'
import type { ModelToolCall } from '../model/model-call.ts'
import type { Tool } from './tool.ts'

/** The calls of an answer, by who acts next. */
export interface SortedCalls {
  /** To run now; denied calls are among them, and fail as they run. */
  now: ModelToolCall[]
  /** What is asked of a person about the others. */
  questions: EngineEvent[]
  /** True when any call waits: for a person, or for the client that executes it. */
  isWaiting: boolean
}

/** Decides on each call of an answer, before any of them runs. */
export function sortCalls(
  calls: readonly ModelToolCall[],
  tools: ReadonlyMap<string, Tool>,
  { permissions, clientTools }: Pick<EngineContext, 'permissions' | 'clientTools'>,
): SortedCalls {
  const now: ModelToolCall[] = []
  const questions: EngineEvent[] = []
  let isWaiting = false
  for (const call of calls) {
    const { callId, name, input, problem } = call
    const isClients = Object.hasOwn(clientTools, name)
    if (problem !== undefined || (!isClients && !tools.has(name))) {
      now.push(call)
      continue
    }
    const isReadOnly = tools.get(name)?.isReadOnly === true
    const { decision, reason } = permissions.decide(name, input, { isReadOnly })
    if (decision === 'deny') now.push({ ...call, problem: reason ?? `${name} is not allowed.` })
    else if (isClients) isWaiting = true
    else if (decision === 'allow') now.push(call)
    else {
      isWaiting = true
      questions.push({ type: 'approval-request', callId, ...(reason !== undefined && { reason }) })
    }
  }
  return { now, questions, isWaiting }
}
