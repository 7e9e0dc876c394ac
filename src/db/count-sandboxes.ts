import type { Database } from 'bun:sqlite'
import type { Isolation } from '../plugin-api/index.ts'

interface Count {
  backend: string
  isolation: Isolation | null
  total: number
  running: number
}

/**
 * Counts the sandboxes of each backend and isolation, and how many of them are among these environments. It reads only an index.
 */
export const countSandboxes = (db: Database, environmentIds: readonly string[]): Count[] =>
  db
    .query<Count, { environmentIds: string }>(
      `select backend, isolation, count(*) as total,
         coalesce(sum(environment_id in (select value from json_each($environmentIds))), 0) as running
       from sandboxes group by backend, isolation order by backend, isolation`,
    )
    .all({ environmentIds: JSON.stringify(environmentIds) })
