import type { EngineEnd, EngineEvent } from '../../plugin-api/index.ts'

/** What an engine's turn yields, and how it ended. */
export type TurnEvents = AsyncGenerator<EngineEvent, EngineEnd>

/** Passes a turn on with each event as `onEvent` returns it. Shows the end to `onEnd`. Closes `events` when it is left. */
export async function* mapTurn(
  events: TurnEvents,
  onEvent: (event: EngineEvent) => EngineEvent,
  onEnd: (end: EngineEnd) => void = () => {},
): TurnEvents {
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
