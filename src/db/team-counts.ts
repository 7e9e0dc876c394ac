import type { Database } from 'bun:sqlite'

/**
 * How much of each kind a team has. `disk` is the size in bytes of the files of its sandboxes and snapshots, as far as their
 * backends have reported it.
 */
const counts = {
  sandboxes: 'select count(*) as count from sandboxes where team_id = $teamId',
  disk: `select (select coalesce(sum(disk_bytes), 0) from sandboxes where team_id = $teamId)
    + (select coalesce(sum(bytes), 0) from snapshots where team_id = $teamId) as count`,
  agents: 'select count(*) as count from agents where team_id = $teamId',
  bundles: `select count(*) as count from (
    select bundle from deployments d join agents a on a.id = d.agent_id where a.team_id = $teamId and bundle is not null
    union select template from deployments d join agents a on a.id = d.agent_id
      where a.team_id = $teamId and template is not null)`,
  versions: `select count(*) as count from deployments d join agents a on a.id = d.agent_id where a.team_id = $teamId`,
} as const

export type TeamCount = keyof typeof counts

export const countOfTeam = (db: Database, teamId: string, what: TeamCount): number =>
  db.query<{ count: number }, { teamId: string }>(counts[what]).get({ teamId })?.count ?? 0

/** Stores the size of a sandbox's files. It need not survive a loss of power, because it is reported again. */
export function saveDiskBytes(db: Database, environmentId: string, diskBytes: number): void {
  db.query('update sandboxes set disk_bytes = $diskBytes where environment_id = $environmentId').run({
    environmentId,
    diskBytes,
  })
}
