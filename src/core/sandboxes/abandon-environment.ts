import { writeWhenFree } from '../../db/busy.ts'
import { settleEnvironment } from '../../db/environments.ts'
import { messageOf } from '../../errors.ts'
import type { EnvironmentPlace } from '../../model/environment.ts'
import type { Runtime } from '../runtime.ts'

/**
 * Removes an environment that has no sandbox. Never rejects: a failure is logged, and what is left is removed by the next
 * start, because the note that it was begun stays.
 */
export async function abandonEnvironment(runtime: Runtime, place: EnvironmentPlace): Promise<void> {
  try {
    await runtime.environments.destroy(place)
    await noteGone(runtime, place.environmentId)
  } catch (error) {
    runtime.log(`${place.environmentId}: ${messageOf(error)}`)
  }
}

/** Notes that an environment is gone. When the note cannot be written, as on a full disk, the next start removes it. */
export const noteGone = ({ db, log }: Runtime, environmentId: string): Promise<void> =>
  writeWhenFree(db, () => settleEnvironment(db, environmentId)).catch(error =>
    log(`${environmentId}: ${messageOf(error)}`),
  )
