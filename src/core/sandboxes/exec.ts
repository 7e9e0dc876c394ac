import { type CommandOptions, type CommandResult, runCommand } from '../../environment/run-command.ts'
import { type Caller, causeOf } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { beginExec, outcomeOf } from './observe-exec.ts'
import { assertStartable } from './program.ts'
import { useSandbox } from './use-sandbox.ts'

const DEFAULT_TIMEOUT_MS = 60_000

export interface CommandRequest {
  /** For the sandbox's shell. */
  command: string
  /** The sandbox's own unless given. */
  cwd?: string
  /** Added to the sandbox's own. */
  envs?: Readonly<Record<string, string>>
  /** Default 60,000. */
  timeoutMs?: number
}

/** A command that is ready to run. Its sandbox is in use until this is disposed of. */
export interface Command extends Disposable {
  /** Throws as `runCommand` does. */
  run(options: Pick<CommandOptions, 'signal' | 'maxOutputBytes' | 'onOutput'>): Promise<CommandResult>
}

/** Checks what can be checked before a command starts. Throws as `useSandbox` does, and invalid_request. */
export async function prepareCommand(
  runtime: Runtime,
  caller: Caller,
  sandboxId: string,
  { command, cwd, envs, timeoutMs = DEFAULT_TIMEOUT_MS }: CommandRequest,
): Promise<Command> {
  using use = await useSandbox(runtime, caller, sandboxId)
  const { sandbox, environment } = use
  const program = { command, cwd: cwd ?? sandbox.cwd, env: { ...sandbox.envs, ...envs }, timeoutMs }
  assertStartable(program)
  const held = use.hold()
  return {
    run: options =>
      observed(beginExec(runtime, { sandbox, cause: causeOf(caller) }, command), () =>
        runCommand(environment, { ...program, ...options }),
      ),
    [Symbol.dispose]: () => held[Symbol.dispose](),
  }
}

async function observed(
  ended: ReturnType<typeof beginExec>,
  run: () => Promise<CommandResult>,
): Promise<CommandResult> {
  try {
    const result = await run()
    ended({ outcome: 'exited', exitCode: result.exitCode })
    return result
  } catch (error) {
    ended({ outcome: outcomeOf(error) })
    throw error
  }
}
