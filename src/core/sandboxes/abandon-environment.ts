import { writeWhenFree } from '../../db/busy.ts'
import { settleEnvironment } from '../../db/environments.ts'
import { messageOf } from '../../errors.ts'
import type { EnvironmentPlace } from '../../model/environment.ts'
import type { Runtime } from '../runtime.ts'

/**
 * Removes an environment that has no sandbox. Never rejects: a failure is logged. The note that the environment was begun stays,
 * so the next start removes what is left.
 */
export async function abandonEnvironment(runtime: Runtime, place: EnvironmentPlace): Promise<void> {
  try {
    await runtime.environments.destroy(place)
    await noteGone(runtime, place.environmentId)
  } catch (error) {
    runtime.log(`${place.environmentId}: ${messageOf(error)}`)
  }
}

/** Stores that an environment is gone. When that fails, as on a full disk, the next start removes the environment again. */
export const noteGone = ({ db, log }: Runtime, environmentId: string): Promise<void> =>
  writeWhenFree(db, () => settleEnvironment(db, environmentId)).catch(error =>
    log(`${environmentId}: ${messageOf(error)}`),
  )
