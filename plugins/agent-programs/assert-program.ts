import { runCommand } from '../../src/environment/run-command.ts'
import { ApiError } from '../../src/errors.ts'
import type { CheckContext } from '../../src/plugin-api/index.ts'

const TIMEOUT_MS = 30_000

/** Throws an ApiError, with the command that installs the program, when the sandbox does not have it. */
export async function assertProgram(
  { environment, cwd, env, signal }: CheckContext,
  program: string,
  install: string | undefined,
): Promise<void> {
  const { exitCode } = await runCommand(environment, {
    command: ['sh', '-c', 'command -v "$1" >/dev/null', 'sh', program],
    ...{ cwd, env, signal, timeoutMs: TIMEOUT_MS },
  })
  if (exitCode === 0) return
  const remedy = install ? ` Add this line to the agent's "setup": ${install}` : ''
  throw new ApiError('invalid_request', `There is no ${program} in this sandbox.${remedy}`)
}
