import { writeWhenFree } from '../../db/busy.ts'
import { findEventRange, listEvents, purgeEvents } from '../../db/events.ts'
import { showable } from '../../db/lasting.ts'
import { messageOf } from '../../errors.ts'
import type { TeamEvent } from '../../model/event.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'

const PAGE = 200
const KEPT_MS = 86_400_000
const KEPT_EVENTS = 100_000

export interface EventRequest {
  types?: readonly string[]
  sandboxId?: string
  /** The last event that the reader has; absent when it wants only later ones. */
  after?: number
}

/** What a reader of events gets: an event, a place to begin from, the message that events were lost, or a heartbeat. */
export type EventStep =
  | { kind: 'events'; events: readonly TeamEvent[] }
  | { kind: 'start'; at: number }
  | { kind: 'lost'; at: number }
  | { kind: 'silence' }

/** Yields what happens in the caller's team, within a token's scope, until the reader stops. */
export async function* followEvents(
  { db, events }: Pick<Runtime, 'db' | 'events'>,
  { teamId, token }: Caller,
  { after, ...wanted }: EventRequest,
): AsyncGenerator<EventStep> {
  const { oldest, newest } = findEventRange(db)
  const isLost = after !== undefined && (after < oldest - 1 || after > newest)
  let at = after === undefined || isLost ? newest : after
  yield { kind: isLost ? 'lost' : 'start', at }
  const filter = {
    teamId,
    limit: PAGE,
    ...wanted,
    isToken: token !== undefined,
    ...(token?.agents && { agents: token.agents }),
    ...(token?.userId !== undefined && { userId: token.userId }),
  }
  for (;;) {
    // The newest id is read first, so that the next round finds what is stored meanwhile.
    const { newest } = findEventRange(db)
    const found = listEvents(db, { ...filter, after: at })
    const last = found.at(-1)?.id ?? at
    at = found.length < PAGE ? Math.max(last, newest) : last
    await showable(db)
    if (found.length > 0) yield { kind: 'events', events: found }
    else if (!(await events.later(at))) yield { kind: 'silence' }
  }
}

/** Removes events that are older than a day, and all but the newest 100,000. Never rejects: a failure is logged. */
export async function purgeOldEvents({ db, log }: Pick<Runtime, 'db' | 'log'>): Promise<void> {
  const before = new Date(Date.now() - KEPT_MS).toISOString()
  await writeWhenFree(db, () => purgeEvents(db, { before, most: KEPT_EVENTS })).catch(error =>
    log(`old events: ${messageOf(error)}`, 'error'),
  )
}
