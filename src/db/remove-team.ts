import type { Database } from 'bun:sqlite'
import { now } from './id.ts'
import { mustLast } from './lasting.ts'
import { inTransaction } from './open.ts'

/** What the removal of a team deletes. */
export interface TeamContents {
  sandboxes: number
  threads: number
  keys: number
  /** Does not count `echo`, which every team has. */
  agents: number
}

/** Counts keys that are neither revoked nor expired. */
export const countContents = (db: Database, teamId: string): TeamContents =>
  db
    .query<TeamContents, { teamId: string; now: string }>(
      `select (select count(*) from sandboxes where team_id = $teamId) as sandboxes,
         (select count(*) from threads where list_team_id = $teamId) as threads,
         (select count(*) from agents where team_id = $teamId and slug <> 'echo') as agents,
         (select count(*) from api_keys where team_id = $teamId and revoked_at is null
           and (expires_at is null or expires_at > $now)) as keys`,
    )
    .get({ teamId, now: now() }) ?? { sandboxes: 0, threads: 0, keys: 0, agents: 0 }

/**
 * Closes a team at once: its keys are revoked, its browsers are signed out, and nothing of it begins any more. Its name is free
 * for a new team. A server removes its sandboxes later.
 */
export const closeTeam = (db: Database, id: string): void =>
  inTransaction(db, () => {
    mustLast(db)
    const at = now()
    db.query(`update teams set removed_at = $at, name = name || ' (removed ' || id || ')' where id = $id`).run({
      id,
      at,
    })
    db.query('update api_keys set revoked_at = $at where team_id = $id and revoked_at is null').run({ id, at })
    for (const table of ['sessions', 'sign_in_links', 'schedules', 'webhooks', 'secrets'])
      db.query(`delete from ${table} where team_id = $id`).run({ id })
  })

/** The ids of closed teams that are not wholly removed yet. */
export const listClosedTeams = (db: Database): string[] =>
  db
    .query<{ id: string }, []>('select id from teams where removed_at is not null order by id')
    .all()
    .map(({ id }) => id)

/**
 * Deletes a team with all its rows. Returns false while it has a sandbox or a snapshot, because their files are removed first.
 */
export function deleteTeam(db: Database, id: string): boolean {
  mustLast(db)
  return (
    db
      .query(
        `delete from teams where id = $id and not exists (select 1 from sandboxes where team_id = $id)
           and not exists (select 1 from snapshots where team_id = $id)`,
      )
      .run({ id }).changes > 0
  )
}

export const hasTeam = (db: Database, id: string): boolean =>
  db.query<{ id: string }, { id: string }>('select id from teams where id = $id').get({ id }) !== null
