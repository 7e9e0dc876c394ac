import { runCommand } from '../../environment/run-command.ts'
import { ApiError } from '../../errors.ts'
import type { Environment } from '../../plugin-api/index.ts'

const LOOK_EVERY_MS = 100
const TRIES = 20

/** Resolves to true once the sandbox runs a command, also when it had stopped before. */
export async function runsAgain(environment: Environment, signal: AbortSignal): Promise<boolean> {
  for (let tries = 0; tries < TRIES; tries++) {
    signal.throwIfAborted()
    const { stdout } = await runCommand(environment, { command: 'echo alive', signal }).catch(() => ({ stdout: '' }))
    if (stdout === 'alive\n') return true
    await Bun.sleep(LOOK_EVERY_MS)
  }
  return false
}

/** Treats a stopped sandbox as one that gave nothing more. */
export function asStopped(error: unknown): readonly string[] {
  if (error instanceof ApiError && error.code === 'sandbox_unavailable') return []
  throw error
}
