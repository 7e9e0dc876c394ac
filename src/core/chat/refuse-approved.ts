import type { CallAnswer, EngineEvent, Permissions, Turn } from '../../plugin-api/index.ts'

/** A turn whose approved calls may all run, and what becomes of the others. */
export interface CheckedTurn {
  turn: Turn
  events: EngineEvent[]
}

/**
 * Denies the calls that a person has approved and that the rules deny by now: the rules may have changed since. A late
 * answer has a reply of its own, which does not show such a call.
 */
export function refuseApproved(turn: Turn, permissions: Permissions): CheckedTurn {
  const { continues } = turn
  if (!continues) return { turn, events: [] }
  const events: EngineEvent[] = []
  const answers = continues.answers.map((answer): CallAnswer => {
    if (answer.type !== 'approved') return answer
    const { callId, name, input } = answer
    const { decision, reason = `${name} is not allowed any more.` } = permissions.decide(name, input)
    if (decision !== 'deny') return answer
    if (!continues.isLate) events.push({ type: 'tool-result', callId, output: null, error: reason })
    return { callId, name, input, type: 'denied', reason }
  })
  return { turn: { ...turn, continues: { ...continues, answers } }, events }
}
