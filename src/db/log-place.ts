import type { Database } from 'bun:sqlite'

/** The team, the sandbox and the thread that a line of the log is about. */
export interface LogPlace {
  teamId: string
  sandboxId: string
  threadId?: string
}

/** Finds the place of a run, or of a sandbox by its own id or its environment's. */
export function findLogPlace(
  db: Database,
  { runId = '', sandboxId = '', environmentId = '' }: { runId?: string; sandboxId?: string; environmentId?: string },
): LogPlace | undefined {
  const row = db
    .query<LogPlace & { threadId: string | null }, { runId: string; sandboxId: string; environmentId: string }>(
      `select s.team_id as teamId, s.id as sandboxId, r.thread_id as threadId
       from runs r join sandboxes s on s.id = r.sandbox_id where r.id = $runId
       union all
       select team_id, id, null from sandboxes where id = $sandboxId
       union all
       select team_id, id, null from sandboxes where environment_id = $environmentId
       limit 1`,
    )
    .get({ runId, sandboxId, environmentId })
  if (!row) return undefined
  const { threadId, ...place } = row
  return { ...place, ...(threadId !== null && { threadId }) }
}
