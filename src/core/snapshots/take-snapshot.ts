import { writeWhenFree } from '../../db/busy.ts'
import { newId } from '../../db/id.ts'
import { lasting } from '../../db/lasting.ts'
import {
  deleteSnapshotRow,
  finishSnapshot,
  getSnapshotRow,
  insertSnapshot,
  markSnapshotRemoved,
} from '../../db/snapshots.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Snapshot, SnapshotState } from '../../model/snapshot.ts'
import type { Snapshots } from '../../plugin-api/index.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { releaseSnapshots } from '../sandboxes/release-snapshots.ts'
import { useSandbox } from '../sandboxes/use-sandbox.ts'

/**
 * Takes a snapshot of a sandbox, which goes on. The row is stored before the files, so that the next start finds what a killed
 * server has left. Throws as `useSandbox` does, and conflict on a backend without snapshots.
 */
export async function takeSnapshot(
  runtime: Runtime,
  caller: Caller,
  sandboxId: string,
  { name, state }: { name?: string; state: SnapshotState },
  signal?: AbortSignal,
): Promise<Snapshot> {
  const { db, teamLimits, diskSpace } = runtime
  using use = await useSandbox(runtime, caller, sandboxId)
  const { sandbox, environment } = use
  const snapshots = snapshotsOf(runtime, sandbox.backend)
  teamLimits.assertRoom(caller.teamId, 'disk')
  await diskSpace.assertEnough()
  signal?.throwIfAborted()
  const id = newId('snap')
  const { teamId, backend, agentSlug, agentName, envs, cwd, network } = sandbox
  const { timeoutMs, deploymentId, bundle, externalUserId } = sandbox
  await writeWhenFree(db, () =>
    insertSnapshot(db, {
      ...{ id, teamId, backend, agentSlug, agentName, envs, cwd, network, sandboxId: sandbox.id },
      state: 'making',
      limits: environment.limits ?? {},
      ...(name !== undefined && { name }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(deploymentId !== undefined && { deploymentId }),
      ...(bundle !== undefined && { bundle }),
      ...(externalUserId !== undefined && { externalUserId }),
    }),
  )
  try {
    const taken = await snapshots.take(sandbox.environmentId, id, signal)
    await writeWhenFree(db, () => finishSnapshot(db, id, state, taken))
    await lasting(db)
    return getSnapshotRow(db, id)
  } catch (error) {
    await dropSnapshot(runtime, snapshots, id)
    throw error
  }
}

/** Throws conflict for a backend without snapshots. */
export function snapshotsOf({ backends }: Pick<Runtime, 'backends'>, backend: string): Snapshots {
  const snapshots = backends.get(backend)?.snapshots
  if (!snapshots) throw new ApiError('conflict', `The backend ${backend} takes no snapshots.`)
  return snapshots
}

/** Never rejects: the next start removes what is left. */
async function dropSnapshot({ db, log }: Runtime, snapshots: Snapshots, id: string): Promise<void> {
  try {
    if (await snapshots.remove(id)) await writeWhenFree(db, () => deleteSnapshotRow(db, id))
  } catch (error) {
    log(`${id}: ${messageOf(error)}`)
  }
}

/** Removes a snapshot from every list; its files go as soon as no sandbox shares them. */
export async function discardSnapshot(runtime: Runtime, id: string): Promise<void> {
  await writeWhenFree(runtime.db, () => markSnapshotRemoved(runtime.db, id))
  await lasting(runtime.db)
  await releaseSnapshots(runtime)
}
