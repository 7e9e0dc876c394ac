import { findPassedChecks } from '../../db/backends.ts'
import { whenFree, writeWhenFree } from '../../db/busy.ts'
import { insertStray, listStrays, listUnfinished, settleEnvironment } from '../../db/environments.ts'
import { newId } from '../../db/id.ts'
import { listEnvironments, listExpiredSandboxes, touchEnvironment } from '../../db/sandboxes.ts'
import { messageOf } from '../../errors.ts'
import type { EnvironmentPlace } from '../../model/environment.ts'
import type { Runtime } from '../runtime.ts'
import { removeSandbox } from './sandboxes.ts'

/** Removes the sandboxes whose time to live has passed. Never rejects: a failure is logged, and tried again at the next sweep. */
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

/** How long environments without a sandbox are kept. */
const STRAYS_KEPT_MS = 7 * 86_400_000

/**
 * Removes environments that a crash left while they were made or removed. Others without a sandbox may hold all that
 * somebody has, as when the database is older than they are: those are paused, and kept for a week. Never rejects: a
 * failure is logged, and tried again at the next start. A backend that was never used with this data directory has none: it
 * is not asked, and may be one that cannot run here.
 */
export async function removeOrphans(runtime: Runtime): Promise<void> {
  const { config, db, backends, environments, log } = runtime
  // Ids sort by time: what is made from now on may wait for its row.
  const now = newId('env')
  for (const [name, backend] of backends) {
    if (name !== config.backend && findPassedChecks(db, name) === undefined) continue
    try {
      const present = new Set(await backend.list())
      const known = new Set(listEnvironments(db, name))
      const unfinished = new Set(listUnfinished(db, name))
      for (const environmentId of present.union(unfinished)) {
        if (environmentId >= now) continue
        const place = { backend: name, environmentId }
        if (unfinished.has(environmentId) && !known.has(environmentId)) await environments.destroy(place)
        else if (!known.has(environmentId)) await setAside(runtime, place)
        if (known.has(environmentId) || unfinished.has(environmentId))
          await writeWhenFree(db, () => settleEnvironment(db, environmentId))
      }
    } catch (error) {
      log(`orphans of ${name}: ${messageOf(error)}`, 'error')
    }
  }
}

async function setAside({ db, environments, log }: Runtime, place: EnvironmentPlace): Promise<void> {
  const { environmentId } = place
  if (await writeWhenFree(db, () => insertStray(db, place))) {
    log(
      `${environmentId} has no sandbox here, and is kept for a week: threadbox strays adopt ${environmentId} gives it one`,
    )
  }
  const environment = await environments.get(place)
  await environment.pause?.()
}

/** Removes strays after their week. Never rejects: a failure is logged, and tried again the next time. */
export async function removeOldStrays({ db, environments, log }: Runtime): Promise<void> {
  for (const stray of listStrays(db, new Date(Date.now() - STRAYS_KEPT_MS).toISOString())) {
    try {
      // It may have got its sandbox since.
      if (!listEnvironments(db, stray.backend).includes(stray.environmentId)) {
        await environments.destroy(stray)
        log(`${stray.environmentId} had no sandbox for a week, and is removed`)
      }
      await writeWhenFree(db, () => settleEnvironment(db, stray.environmentId))
    } catch (error) {
      log(`${stray.environmentId}: ${messageOf(error)}`)
    }
  }
}
