import { writeWhenFree } from '../../db/busy.ts'
import { deleteSnapshotRow, listRemovedSnapshots } from '../../db/snapshots.ts'
import { messageOf } from '../../errors.ts'
import { removeUnusedBundles } from '../agents/bundles.ts'
import type { Runtime } from '../runtime.ts'

/**
 * Removes the files of removed snapshots, unless a sandbox still shares them. Never rejects: a failure is logged, and tried again
 * when the next sandbox or snapshot is removed, and at the next start.
 */
export async function releaseSnapshots(runtime: Runtime): Promise<void> {
  const { db, backends, log } = runtime
  // The newest comes first, because it may be the only one that shares an older one.
  for (const { id, backend, bundle } of listRemovedSnapshots(db)) {
    try {
      const snapshots = backends.get(backend)?.snapshots
      if (!snapshots || !(await snapshots.remove(id))) continue
      await writeWhenFree(db, () => deleteSnapshotRow(db, id))
      if (bundle !== undefined) await removeUnusedBundles(runtime)
    } catch (error) {
      log(`${id}: ${messageOf(error)}`)
    }
  }
}
