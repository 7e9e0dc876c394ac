import type { Database } from 'bun:sqlite'
import type { Snapshot, SnapshotInput, SnapshotPage, SnapshotState } from '../model/snapshot.ts'
import type { CopyMethod, Limits, TakenSnapshot } from '../plugin-api/index.ts'
import { isObject } from '../read/json.ts'
import { now } from './id.ts'
import { mustLast } from './lasting.ts'
import { type Columns, isStringRecord, present, readJson } from './row.ts'
import { isNetwork } from './sandboxes.ts'
import { isSecretEnvs, seal, unseal, unsealed } from './seal.ts'

type Texts = 'envs' | 'network' | 'limits'
type Row = Columns<Omit<Snapshot, Texts>> & Record<Texts, string>

const columns = `id, team_id as teamId, name, state, backend, sandbox_id as sandboxId, agent_slug as agentSlug,
  agent_name as agentName, envs, cwd, network, limits, timeout_ms as timeoutMs, deployment_id as deploymentId, bundle,
  external_user_id as externalUserId, bytes, frozen_ms as frozenMs, method, fork_method as forkMethod, created_at as createdAt`

const isLimits = (value: unknown): value is Limits =>
  isObject(value) && Object.values(value).every(limit => typeof limit === 'number')

const toSnapshot = (db: Database, { envs, network, limits, ...row }: Row): Snapshot => ({
  ...present<Omit<Snapshot, Texts>>(row),
  network: readJson(network, 'snapshots.network', isNetwork),
  limits: readJson(limits, 'snapshots.limits', isLimits),
  // They are read on demand, so that a snapshot whose variables cannot be decrypted can still be listed and deleted.
  get envs() {
    const text = unsealed('sandbox', () => unseal(db, envs, 'snapshots.envs', row.id))
    return readJson(text, 'snapshots.envs', isStringRecord)
  },
})

/** Throws when the team has a snapshot of this name. */
export function insertSnapshot(db: Database, snapshot: SnapshotInput): void {
  mustLast(db)
  const unknown: CopyMethod = 'copy'
  db.query(
    `insert into snapshots (id, team_id, name, state, backend, sandbox_id, agent_slug, agent_name, envs, cwd, network, limits,
       timeout_ms, deployment_id, bundle, external_user_id, bytes, frozen_ms, method, fork_method, created_at)
     values ($id, $teamId, $name, $state, $backend, $sandboxId, $agentSlug, $agentName, $envs, $cwd, $network, $limits,
       $timeoutMs, $deploymentId, $bundle, $externalUserId, 0, 0, $unknown, $unknown, $createdAt)`,
  ).run({
    name: null,
    timeoutMs: null,
    deploymentId: null,
    bundle: null,
    externalUserId: null,
    ...snapshot,
    envs: isSecretEnvs(snapshot.envs) ? seal(db, JSON.stringify(snapshot.envs), 'snapshots.envs', snapshot.id) : '{}',
    network: JSON.stringify(snapshot.network),
    limits: JSON.stringify(snapshot.limits),
    unknown,
    createdAt: now(),
  })
}

/** Stores how a snapshot was taken, and makes it visible. */
export function finishSnapshot(
  db: Database,
  id: string,
  state: SnapshotState,
  { bytes = 0, frozenMs, method, forkMethod }: TakenSnapshot,
): void {
  mustLast(db)
  db.query(
    `update snapshots set state = $state, bytes = $bytes, frozen_ms = $frozenMs, method = $method, fork_method = $forkMethod
     where id = $id`,
  ).run({ id, state, bytes: Math.round(bytes), frozenMs: Math.round(frozenMs), method, forkMethod })
}

/** A visible snapshot of a team, by its id or name. */
export function findSnapshot(db: Database, teamId: string, idOrName: string): Snapshot | undefined {
  const row = db
    .query<Row, { teamId: string; idOrName: string }>(
      `select ${columns} from snapshots where team_id = $teamId and (id = $idOrName or name = $idOrName) and state = 'ready'`,
    )
    .get({ teamId, idOrName })
  return row ? toSnapshot(db, row) : undefined
}

/** A snapshot in any state. */
export function getSnapshotRow(db: Database, id: string): Snapshot {
  const row = db.query<Row, { id: string }>(`select ${columns} from snapshots where id = $id`).get({ id })
  if (!row) throw new Error(`there is no snapshot ${id}`)
  return toSnapshot(db, row)
}

export const hasSnapshotName = (db: Database, teamId: string, name: string): boolean =>
  db
    .query<{ id: string }, { teamId: string; name: string }>(
      `select id from snapshots where team_id = $teamId and name = $name and state in ('making', 'ready')`,
    )
    .get({ teamId, name }) !== null

type PageQuery = { teamId: string; limit: number; before: string | null; sandboxId: string | null }

/** A page of a team's visible snapshots, newest first. */
export const listSnapshots = (db: Database, teamId: string, { limit, before, sandboxId }: SnapshotPage): Snapshot[] =>
  db
    .query<Row, PageQuery>(
      `select ${columns} from snapshots
       where team_id = $teamId and state = 'ready' and ($before is null or id < $before)
         and ($sandboxId is null or sandbox_id = $sandboxId)
       order by id desc limit $limit`,
    )
    .all({ teamId, limit, before: before ?? null, sandboxId: sandboxId ?? null })
    .map(row => toSnapshot(db, row))

/** Makes a snapshot invisible. Returns false when it was so before. */
export function markSnapshotRemoved(db: Database, id: string): boolean {
  mustLast(db)
  return (
    db.query("update snapshots set state = 'removed' where id = $id and state <> 'removed'").run({ id }).changes > 0
  )
}

/** Makes all snapshots of a team invisible. */
export function markSnapshotsOfTeamRemoved(db: Database, teamId: string): void {
  mustLast(db)
  db.query("update snapshots set state = 'removed' where team_id = $teamId and state <> 'removed'").run({ teamId })
}

/** Makes the snapshots invisible that a server left unfinished when it ended. */
export function markUnfinishedSnapshotsRemoved(db: Database): void {
  mustLast(db)
  db.query("update snapshots set state = 'removed' where state in ('making', 'forking')").run()
}

/** The snapshots whose files will be removed. */
export const listRemovedSnapshots = (db: Database): Pick<Snapshot, 'id' | 'backend' | 'bundle'>[] =>
  db
    .query<{ id: string; backend: string; bundle: string | null }, []>(
      "select id, backend, bundle from snapshots where state = 'removed' order by id desc",
    )
    .all()
    .map(row => present<Pick<Snapshot, 'id' | 'backend' | 'bundle'>>(row))

export function deleteSnapshotRow(db: Database, id: string): void {
  mustLast(db)
  db.query('delete from snapshots where id = $id').run({ id })
}
