import { newId } from '../../db/id.ts'
import type { ErrorCode } from '../../errors.ts'
import type { EngineEnd, EngineEvent } from '../../plugin-api/index.ts'
import type { SteeringPart } from '../../stream/chunk.ts'
import type { RunEvent } from '../../stream/run-event.ts'

/** A turn as a run takes it. */
export type RunEvents = AsyncGenerator<RunEvent, EngineEnd>

/** What an engine's turn yields, and how it ended. */
export type TurnEvents = AsyncGenerator<EngineEvent, EngineEnd>

/** Gives an id to each approval that an engine asks for, and its words to each message that it took. */
export const toRunEvents = (events: TurnEvents, steeringParts: (messageId: string) => SteeringPart[]): RunEvents =>
  mapTurn<RunEvent>(events, event => {
    if (event.type === 'approval-request') return { ...event, approvalId: newId('apr') }
    if (event.type === 'steered')
      return { type: 'steering', id: event.messageId, parts: steeringParts(event.messageId) }
    return event
  })

/** Passes a turn on with each event as `onEvent` returns it. Shows the end to `onEnd`. Closes `events` when it is left. */
export async function* mapTurn<Mapped = EngineEvent>(
  events: TurnEvents,
  onEvent: (event: EngineEvent) => Mapped,
  onEnd: (end: EngineEnd) => void = () => {},
): AsyncGenerator<Mapped, EngineEnd> {
  try {
    for (let step = await events.next(); ; step = await events.next()) {
      if (step.done) {
        onEnd(step.value)
        return step.value
      }
      yield onEvent(step.value)
    }
  } finally {
    await events.return({ status: 'cancelled' })
  }
}

/** A turn that cannot be had. */
export async function* failWith(code: ErrorCode, message: string): RunEvents {
  yield { type: 'notice', level: 'warn', code, text: message }
  return { status: 'failed', error: { code, message } }
}
