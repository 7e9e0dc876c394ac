import type { Fact, Observe } from '../../model/observation.ts'
import type { Continuation, EngineEnd } from '../../plugin-api/index.ts'
import type { TurnEvents } from './turn-events.ts'

type About = Pick<Fact & { type: 'tool-call.ended' }, 'teamId' | 'sandboxId' | 'threadId' | 'runId' | 'engine'>
type Outcome = (Fact & { type: 'tool-call.ended' })['outcome']

/** Passes a turn's events on and reports when its tool calls begin and end. An approved call begins when it is executed. */
export async function* observeTools(
  events: TurnEvents,
  observe: Observe,
  about: About,
  continues: Continuation | undefined,
): TurnEvents {
  const names = new Map(continues?.answers.map(({ callId, name }) => [callId, name]))
  const open = new Map<string, number>()
  const begin = (callId: string) => {
    if (open.has(callId)) return
    open.set(callId, performance.now())
    observe({ type: 'tool-call.started', ...about, callId, name: names.get(callId) ?? '' })
  }
  const end = (callId: string, outcome: Outcome) => {
    const begunAtMs = open.get(callId)
    if (begunAtMs === undefined) return
    open.delete(callId)
    const durationMs = performance.now() - begunAtMs
    observe({ type: 'tool-call.ended', ...about, callId, name: names.get(callId) ?? '', outcome, durationMs })
  }
  let ended: EngineEnd | undefined
  try {
    for (let step = await events.next(); ; step = await events.next()) {
      if (step.done) {
        ended = step.value
        return step.value
      }
      const event = step.value
      if (event.type === 'tool-input' || event.type === 'tool-call') names.set(event.callId, event.name)
      if (event.type === 'tool-call' || event.type === 'tool-begin') begin(event.callId)
      else if (event.type === 'approval-request') end(event.callId, 'waiting')
      else if (event.type === 'tool-result') end(event.callId, event.error === undefined ? 'done' : 'failed')
      yield event
    }
  } finally {
    for (const callId of open.keys()) end(callId, ended?.status === 'waiting' ? 'waiting' : 'cut')
    await events.return({ status: 'cancelled' })
  }
}
