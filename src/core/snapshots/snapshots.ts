import { findSnapshot, hasSnapshotName, listSnapshots } from '../../db/snapshots.ts'
import { ApiError } from '../../errors.ts'
import type { Snapshot, SnapshotPage } from '../../model/snapshot.ts'
import { assertKey, type Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { getSandbox } from '../sandboxes/sandboxes.ts'
import { discardSnapshot, takeSnapshot } from './take-snapshot.ts'

const TOKENS = 'work with snapshots'

/**
 * Stores the files of a sandbox as of one moment, under a name that is unique in the team. Running processes are not part of it,
 * and go on. Throws as `useSandbox` does, forbidden for a token, and conflict for a name that is taken and on a backend without
 * snapshots.
 */
export async function createSnapshot(
  runtime: Runtime,
  caller: Caller,
  sandboxId: string,
  { name }: { name?: string } = {},
  signal?: AbortSignal,
): Promise<Snapshot> {
  getSandbox(runtime, caller, sandboxId)
  assertKey(caller, TOKENS)
  if (name !== undefined && hasSnapshotName(runtime.db, caller.teamId, name)) {
    throw new ApiError('conflict', 'name: a snapshot has this name already', { field: 'name' })
  }
  return await takeSnapshot(runtime, caller, sandboxId, { ...(name !== undefined && { name }), state: 'ready' }, signal)
}

/** Finds a snapshot by its id or name. Throws not_found, also for one of another team; forbidden for a token. */
export function getSnapshot({ db }: Pick<Runtime, 'db'>, caller: Caller, idOrName: string): Snapshot {
  assertKey(caller, TOKENS)
  const snapshot = findSnapshot(db, caller.teamId, idOrName)
  if (!snapshot) throw new ApiError('not_found', 'There is no such snapshot.')
  return snapshot
}

/** A page of the team's snapshots, or of those of one sandbox, newest first. Throws sandbox_not_found, forbidden for a token. */
export function listTeamSnapshots(runtime: Runtime, caller: Caller, { sandboxId, ...page }: SnapshotPage): Snapshot[] {
  const of = sandboxId === undefined ? undefined : { sandboxId: getSandbox(runtime, caller, sandboxId).id }
  assertKey(caller, TOKENS)
  return listSnapshots(runtime.db, caller.teamId, { ...page, ...of })
}

/** Removes a snapshot. Sandboxes that were made of it keep what they share with it. Throws as `getSnapshot` does. */
export async function removeSnapshot(runtime: Runtime, caller: Caller, idOrName: string): Promise<void> {
  await discardSnapshot(runtime, getSnapshot(runtime, caller, idOrName).id)
}
