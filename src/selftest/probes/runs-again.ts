import { runCommand } from '../../environment/run-command.ts'
import { ApiError } from '../../errors.ts'
import type { Environment } from '../../plugin-api/index.ts'

const LOOK_EVERY_MS = 100
const TRIES = 20

/** Whether it runs a command again, or for the first time after it was stopped. */
export async function runsAgain(environment: Environment, signal: AbortSignal): Promise<boolean> {
  for (let tries = 0; tries < TRIES; tries++) {
    signal.throwIfAborted()
    const { stdout } = await runCommand(environment, { command: 'echo alive', signal }).catch(() => ({ stdout: '' }))
    if (stdout === 'alive\n') return true
    await Bun.sleep(LOOK_EVERY_MS)
  }
  return false
}

/** A sandbox that is stopped with all that is in it has not given more. */
export function asStopped(error: unknown): readonly string[] {
  if (error instanceof ApiError && error.code === 'sandbox_unavailable') return []
  throw error
}
