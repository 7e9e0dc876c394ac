import { writeWhenFree } from '../../db/busy.ts'
import { deleteTeam, listClosedTeams } from '../../db/remove-team.ts'
import { listSandboxes } from '../../db/sandboxes.ts'
import { markSnapshotsOfTeamRemoved } from '../../db/snapshots.ts'
import { messageOf } from '../../errors.ts'
import { removeUnusedBundles } from '../agents/bundles.ts'
import type { Runtime } from '../runtime.ts'
import { releaseSnapshots } from './release-snapshots.ts'
import { removeSandbox } from './sandboxes.ts'

const AT_ONCE = 100

/**
 * Removes the sandboxes and snapshots of closed teams by their backends, then the teams. The returned function never rejects: a failure is logged,
 * and tried again at its next call. Calls do not overlap.
 */
export function createTeamRemoval(runtime: Runtime): () => Promise<void> {
  const { db, log } = runtime
  let isRemoving = false

  async function remove(teamId: string): Promise<void> {
    for (;;) {
      const sandboxes = listSandboxes(db, teamId, { limit: AT_ONCE })
      for (const sandbox of sandboxes) await removeSandbox(runtime, sandbox)
      if (sandboxes.length === 0) break
    }
    await writeWhenFree(db, () => markSnapshotsOfTeamRemoved(db, teamId))
    await releaseSnapshots(runtime)
    if (await writeWhenFree(db, () => deleteTeam(db, teamId))) await removeUnusedBundles(runtime)
  }

  return async () => {
    if (isRemoving) return
    isRemoving = true
    try {
      for (const teamId of listClosedTeams(db))
        await remove(teamId).catch(error => log(`team ${teamId}: ${messageOf(error)}`, 'error'))
    } catch (error) {
      log(`teams that are to be removed: ${messageOf(error)}`, 'error')
    } finally {
      isRemoving = false
    }
  }
}
