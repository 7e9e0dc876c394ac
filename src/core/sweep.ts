import { findPassedChecks } from '../db/backends.ts'
import { whenFree, writeWhenFree } from '../db/busy.ts'
import { newId } from '../db/id.ts'
import { listEnvironments, listExpiredSandboxes, touchEnvironment } from '../db/sandboxes.ts'
import { messageOf } from '../errors.ts'
import type { Runtime } from '../runtime.ts'
import { removeSandbox } from './sandboxes.ts'

/** Removes the sandboxes whose time to live is over. Never rejects: what fails is logged, and met again. */
export async function removeExpired(runtime: Runtime): Promise<void> {
  const { db, environments, log } = runtime
  try {
    await whenFree(db)
    for (const environmentId of environments.takeHeld())
      await writeWhenFree(db, () => touchEnvironment(db, environmentId))
    for (const sandbox of listExpiredSandboxes(db, new Date())) {
      await removeSandbox(runtime, sandbox).catch(error => log(`${sandbox.id}: ${messageOf(error)}`, 'error'))
    }
  } catch (error) {
    log(`sandboxes that nobody uses: ${messageOf(error)}`, 'error')
  }
}

/**
 * Removes environments that a crash left between their creation and their row, or between the row's deletion and
 * theirs. Never rejects: what fails is logged, and met again at the next start. A backend that was never used with this
 * data directory has none: it is not asked, and may be one that cannot run here.
 */
export async function removeOrphans({ config, db, backends, environments, log }: Runtime): Promise<void> {
  // Ids sort by time: what is made from now on may wait for its row.
  const now = newId('env')
  for (const [name, backend] of backends) {
    if (name !== config.backend && findPassedChecks(db, name) === undefined) continue
    try {
      const present = await backend.list()
      const known = new Set(listEnvironments(db, name))
      for (const environmentId of present) {
        if (environmentId < now && !known.has(environmentId))
          await environments.destroy({ backend: name, environmentId })
      }
    } catch (error) {
      log(`orphans of ${name}: ${messageOf(error)}`, 'error')
    }
  }
}

/** Removes files of agents and sandboxes that are gone. Never rejects: what fails is logged, and met again. */
export const removeUnusedBundles = ({ bundles, log }: Runtime): Promise<void> =>
  bundles.removeUnused().catch(error => log(`bundles: ${messageOf(error)}`, 'error'))
