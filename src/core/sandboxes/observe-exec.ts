import { newId } from '../../db/id.ts'
import { ApiError } from '../../errors.ts'
import type { Cause, Fact } from '../../model/observation.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Environment, SpawnOptions } from '../../plugin-api/index.ts'
import type { Runtime } from '../runtime.ts'
import { noteCommand } from './note-command.ts'

/** Who runs the command: a caller, or an agent in a run. */
interface Origin {
  sandbox: Pick<Sandbox, 'id' | 'teamId'>
  cause?: Cause
  runId?: string
}

type End = Pick<Fact & { type: 'exec.ended' }, 'outcome' | 'exitCode'>

/** Reports that a command begins. Call the result to report how it ended. */
export function beginExec(runtime: Runtime, { sandbox, ...origin }: Origin, command: SpawnOptions['command']) {
  const { observe } = runtime.observers
  const begunAtMs = performance.now()
  const about = { execId: newId('exec'), teamId: sandbox.teamId, sandboxId: sandbox.id, ...origin }
  observe({ type: 'exec.started', ...about, commandSha256: hashCommand(command) })
  noteCommand(runtime, about, command)
  return (end: End) => observe({ type: 'exec.ended', ...about, ...end, durationMs: performance.now() - begunAtMs })
}

/** Hashes a command. The words of a program with arguments are joined by U+0000. */
export const hashCommand = (command: SpawnOptions['command']): string =>
  new Bun.CryptoHasher('sha256').update(typeof command === 'string' ? command : command.join('\0')).digest('hex')

/** Names the outcome of a command that ended with this error. */
export function outcomeOf(error: unknown): 'timeout' | 'aborted' | 'failed' {
  if (error instanceof ApiError && error.code === 'command_timeout') return 'timeout'
  return error instanceof Error && error.name === 'AbortError' ? 'aborted' : 'failed'
}

/** Returns the environment with its commands observed. */
export function observeSpawns(runtime: Runtime, environment: Environment, origin: Origin): Environment {
  const spawn: Environment['spawn'] = async options => {
    const ended = beginExec(runtime, origin, options.command)
    try {
      const child = await environment.spawn(options)
      void child.exited.then(
        ({ exitCode }) => ended(options.signal?.aborted ? { outcome: 'aborted' } : { outcome: 'exited', exitCode }),
        () => ended({ outcome: 'failed' }),
      )
      return child
    } catch (error) {
      ended({ outcome: outcomeOf(error) })
      throw error
    }
  }
  // A proxy is needed because a backend may use any class for its environments.
  return new Proxy(environment, {
    get(target, name) {
      if (name === 'spawn') return spawn
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
