import type { Database } from 'bun:sqlite'
import type { EnvironmentPlace, StrayEnvironment } from '../model/environment.ts'
import { now } from './id.ts'
import { inTransaction } from './open.ts'

/** Marks an environment as being made or removed: as long as it has no sandbox, a sweep may erase it. */
export function beginEnvironment(db: Database, { environmentId, backend }: EnvironmentPlace): void {
  db.query(
    `insert into unfinished_environments (environment_id, backend, began_at) values ($environmentId, $backend, $now)
     on conflict (environment_id) do nothing`,
  ).run({ environmentId, backend, now: now() })
}

/** Removes the mark: the environment has a sandbox now, or is gone. */
export const settleEnvironment = (db: Database, environmentId: string): void =>
  inTransaction(db, () => {
    db.query('delete from unfinished_environments where environment_id = $environmentId').run({ environmentId })
    db.query('delete from stray_environments where environment_id = $environmentId').run({ environmentId })
  })

/** The ids of a backend's environments that were being made or removed. */
export const listUnfinished = (db: Database, backend: string): string[] =>
  db
    .query<{ id: string }, { backend: string }>(
      'select environment_id as id from unfinished_environments where backend = $backend',
    )
    .all({ backend })
    .map(row => row.id)

/** Stores an environment that has no sandbox as a stray. False when it is stored already. */
export const insertStray = (db: Database, { environmentId, backend }: EnvironmentPlace): boolean =>
  db
    .query(
      `insert into stray_environments (environment_id, backend, found_at) values ($environmentId, $backend, $now)
       on conflict (environment_id) do nothing`,
    )
    .run({ environmentId, backend, now: now() }).changes > 0

/** Lists the strays that were found before `foundBefore` (ISO time), or all of them; oldest first. */
export const listStrays = (db: Database, foundBefore = '~'): StrayEnvironment[] =>
  db
    .query<StrayEnvironment, { foundBefore: string }>(
      `select environment_id as environmentId, backend, found_at as foundAt from stray_environments
       where found_at < $foundBefore order by found_at`,
    )
    .all({ foundBefore })
