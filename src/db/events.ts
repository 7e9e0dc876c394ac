import type { Database } from 'bun:sqlite'
import type { EventFilter, TeamEvent } from '../model/event.ts'
import { now } from './id.ts'

type Row = Omit<TeamEvent, 'data'> & { data: string }

export const listEvents = (db: Database, filter: EventFilter): TeamEvent[] =>
  db
    .query<Row, Record<string, string | number | null>>(
      `select id, type, data, created_at as createdAt from events
       where id > $after and team_id = $teamId
         and ($types is null or type in (select value from json_each($types)))
         and ($sandboxId is null or sandbox_id = $sandboxId)
         and ($isToken = 0 or type <> 'budget.reached')
         and ($agents is null or agent_slug in (select value from json_each($agents)))
         and ($userId is null or (user_id = $userId and (type = 'sandbox.deleted' or exists (
           select 1 from sandboxes where sandboxes.id = sandbox_id and external_user_id = $userId))))
       order by id limit $limit`,
    )
    .all({
      teamId: filter.teamId,
      after: filter.after,
      limit: filter.limit,
      isToken: filter.isToken ? 1 : 0,
      types: filter.types ? JSON.stringify(filter.types) : null,
      sandboxId: filter.sandboxId ?? null,
      agents: filter.agents ? JSON.stringify(filter.agents) : null,
      userId: filter.userId ?? null,
    })
    .map(({ data, ...row }) => ({ ...row, data: JSON.parse(data) }))

/** Stores that the sandboxes of these environments have stopped. */
export const insertStops = (db: Database, environmentIds: readonly string[]): void =>
  void db
    .query(
      `insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
       select team_id, 'sandbox.stopped', agent_slug, external_user_id, id,
         json_object('sandboxId', id, 'agent', agent_slug), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
       from sandboxes where environment_id in (select value from json_each($environmentIds))`,
    )
    .run({ environmentIds: JSON.stringify(environmentIds) })

/** An event that no trigger writes. With `threadId` only the user of this thread gets it. */
export interface SandboxEvent {
  type: `process.${'started' | 'ended' | 'removed'}` | 'budget.reached'
  sandboxId: string
  threadId?: string
  data: TeamEvent['data']
}

/** Stores an event. When the sandbox or the thread is gone, nothing is stored. */
export function insertEvent(db: Database, { type, sandboxId, threadId, data }: SandboxEvent): void {
  db.query(
    `insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
     select s.team_id, $type, s.agent_slug, iif($threadId is null, s.external_user_id, t.external_user_id), s.id, $data, $now
     from sandboxes s left join threads t on t.id = $threadId
     where s.id = $sandboxId and ($threadId is null or t.id is not null)`,
  ).run({ type, sandboxId, threadId: threadId ?? null, data: JSON.stringify(data), now: now() })
}

/** The ids of the oldest event that is kept, and of the newest that ever existed. Both are 0 before the first event. */
export function findEventRange(db: Database): { oldest: number; newest: number } {
  const row = db
    .query<{ oldest: number | null; newest: number | null }, []>(
      `select (select min(id) from events) as oldest, (select seq from sqlite_sequence where name = 'events') as newest`,
    )
    .get()
  return { oldest: row?.oldest ?? row?.newest ?? 0, newest: row?.newest ?? 0 }
}

/** Removes events from before this moment, and all but the newest `most`. */
export function purgeEvents(db: Database, { before, most }: { before: string; most: number }): void {
  db.query(
    `delete from events where created_at < $before
       or id <= (select seq from sqlite_sequence where name = 'events') - $most`,
  ).run({ before, most })
}
