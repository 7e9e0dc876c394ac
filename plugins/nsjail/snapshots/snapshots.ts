import type { Snapshots } from '../../../src/plugin-api/index.ts'
import type { BackendContext } from '../context.ts'
import { keepSnapshot } from './keep-snapshot.ts'
import { removeSnapshot } from './remove-snapshot.ts'

/** The snapshots of a data directory. `ready` resolves when what an earlier server left half is gone. */
export const createSnapshots = (context: BackendContext, ready: () => Promise<unknown>): Snapshots => ({
  async take(environmentId, snapshotId, signal) {
    await ready()
    return await keepSnapshot(context, environmentId, snapshotId, signal)
  },
  async remove(snapshotId) {
    await ready()
    return await removeSnapshot(context, snapshotId)
  },
})
