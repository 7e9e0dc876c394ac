import type { EngineEnd, EngineEvent, StoredMessage } from '../../plugin-api/index.ts'

type Events = AsyncGenerator<EngineEvent, EngineEnd>

/** Every tool call of these messages. */
export const callIdsIn = (messages: readonly StoredMessage[]): string[] =>
  messages.flatMap(({ parts }) =>
    parts.flatMap(({ toolCallId }) => (typeof toolCallId === 'string' ? [toolCallId] : [])),
  )

/**
 * A turn's events with an id of its own for each tool call: engines and providers begin anew with every turn, or every
 * answer, and clients find a call in a thread by its id.
 */
export async function* withOwnCallIds(events: Events, taken: Iterable<string>): Events {
  const used = new Set(taken)
  const known = new Map<string, { id: string; isDone: boolean }>()

  function idOf({ type, callId }: Extract<EngineEvent, { callId: string }>): string {
    const found = known.get(callId)
    const isAnother = found?.isDone && (type === 'tool-call' || type === 'tool-input')
    if (found && !isAnother) {
      found.isDone ||= type === 'tool-result'
      return found.id
    }
    let id = callId
    for (let count = 2; used.has(id); count++) id = `${callId}-${count}`
    used.add(id)
    known.set(callId, { id, isDone: type === 'tool-result' })
    return id
  }

  try {
    for (let step = await events.next(); ; step = await events.next()) {
      if (step.done) return step.value
      yield 'callId' in step.value ? { ...step.value, callId: idOf(step.value) } : step.value
    }
  } finally {
    await events.return({ status: 'cancelled' })
  }
}
