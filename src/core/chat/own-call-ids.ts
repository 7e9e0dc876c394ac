import type { EngineEvent, MessagePart, StoredMessage } from '../../plugin-api/index.ts'
import { mapTurn, type TurnEvents } from './turn-events.ts'

/** Lists every tool call of these messages. */
export const listCallIds = (messages: readonly StoredMessage[]): string[] =>
  messages.flatMap(({ parts }) =>
    parts.flatMap(({ toolCallId }) => (typeof toolCallId === 'string' ? [toolCallId] : [])),
  )

/**
 * Passes a turn on with an id of its own for each tool call: engines and providers begin anew with every turn, or every
 * answer, and clients find a call in a thread by its id. `reply`: the parts of the reply that the turn goes on with, whose open
 * calls keep their ids.
 */
export function withOwnCallIds(
  events: TurnEvents,
  taken: Iterable<string>,
  reply: readonly MessagePart[] = [],
): TurnEvents {
  const used = new Set(taken)
  const known = new Map<string, { id: string; isDone: boolean }>()
  for (const { toolCallId: id, state } of reply) {
    if (typeof id !== 'string') continue
    used.add(id)
    known.set(id, { id, isDone: String(state).startsWith('output-') })
  }

  function chooseId({ type, callId }: Extract<EngineEvent, { callId: string }>): string {
    const found = known.get(callId)
    // What begins may be a call of an earlier reply, which was approved late.
    if (type === 'tool-begin') return found?.id ?? callId
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

  return mapTurn(events, event => ('callId' in event ? { ...event, callId: chooseId(event) } : event))
}
