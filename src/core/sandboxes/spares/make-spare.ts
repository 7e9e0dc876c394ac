import { writeWhenFree } from '../../../db/busy.ts'
import { beginEnvironment } from '../../../db/environments.ts'
import { newId } from '../../../db/id.ts'
import { runCommand } from '../../../environment/run-command.ts'
import type { Environment } from '../../../plugin-api/index.ts'
import type { EnvironmentStart, Runtime } from '../../runtime.ts'
import { abandonEnvironment } from '../abandon-environment.ts'
import { DEFAULT_CWD } from '../set-up.ts'

export interface Spare {
  start: EnvironmentStart
  environment: Environment
}

/** The first commands of a guest take three times as long as the later ones. */
const WARMING_COMMANDS = 3
const WARM_WITHIN_MS = 30_000

/**
 * Makes an environment that belongs to no sandbox yet: a sweep erases it unless a create takes it. When this rejects, nothing is
 * left.
 */
export async function makeSpare(runtime: Runtime, start: EnvironmentStart): Promise<Spare> {
  const { db, environments } = runtime
  const place = { backend: start.backend, environmentId: newId('env') }
  await writeWhenFree(db, () => beginEnvironment(db, place))
  try {
    const environment = await environments.create({ ...start, id: place.environmentId, isSpare: true })
    for (let left = WARMING_COMMANDS; left > 0; left--) await tryOut(environment)
    return { start, environment }
  } catch (error) {
    await abandonEnvironment(runtime, place)
    throw error
  }
}

/** Rejects when a spare cannot run a command. */
export async function tryOut(environment: Environment): Promise<void> {
  await runCommand(environment, { command: 'true', cwd: DEFAULT_CWD, env: {}, timeoutMs: WARM_WITHIN_MS })
}

/** Removes a spare. Never rejects: what could not be removed is swept at the next start. */
export const discardSpare = (runtime: Runtime, { start, environment }: Spare): Promise<void> =>
  abandonEnvironment(runtime, { backend: start.backend, environmentId: environment.id })
