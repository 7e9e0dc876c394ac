import { constants } from 'node:os'
import { createGathering } from '../../environment/gathering.ts'
import { ApiError } from '../../errors.ts'
import type {
  EnvironmentProcesses,
  OutputStream,
  ProcessExit,
  ProcessInfo,
  StartOptions,
} from '../../plugin-api/index.ts'
import { type Caller, causeOf } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { noteCommand } from './note-command.ts'
import { hashCommand } from './observe-exec.ts'
import { assertStartable } from './program.ts'
import { type SandboxUse, useSandbox } from './use-sandbox.ts'

export interface ProcessesUse extends SandboxUse {
  processes: EnvironmentProcesses
}

/** A sandbox in use, with its processes. Throws as `useSandbox` does. */
export async function useProcesses(runtime: Runtime, caller: Caller, sandboxId: string): Promise<ProcessesUse> {
  const use = await useSandbox(runtime, caller, sandboxId)
  return { ...use, processes: runtime.environments.processesOf(use.environment) }
}

/** Starts a process with the sandbox's variables and in its directory by default. */
export async function startProcess(
  runtime: Runtime,
  caller: Caller,
  sandboxId: string,
  { env, ...options }: StartOptions,
): Promise<ProcessInfo> {
  using use = await useProcesses(runtime, caller, sandboxId)
  const { sandbox, processes } = use
  const program = { ...options, env: { ...sandbox.envs, ...env } }
  assertStartable(program)
  const info = await processes.start({ cwd: sandbox.cwd, ...program })
  const about = { teamId: sandbox.teamId, sandboxId: sandbox.id, pid: info.pid, cause: causeOf(caller) }
  runtime.observers.observe({ type: 'process.started', ...about, commandSha256: hashCommand(program.command) })
  noteCommand(runtime, about, program.command)
  await runtime.processEvents.started(sandbox, processes, info)
  return info
}

/** The processes of a sandbox, the oldest first. */
export async function listProcesses({ processEvents }: Runtime, { sandbox, processes }: ProcessesUse) {
  const infos = await processes.list()
  processEvents.follow(sandbox, processes, infos)
  return infos
}

/** Kills a process with its tree and forgets it. Throws process_not_found. */
export async function removeProcess({ processEvents }: Runtime, { sandbox, processes }: ProcessesUse, pid: number) {
  await processes.remove(pid)
  await processEvents.removed(sandbox, pid)
}

export type OutputEvent =
  /** What there was before this offset, and was asked for, is gone. */
  | { type: 'gap'; offset: number }
  | { type: OutputStream; offset: number; bytes: Uint8Array }
  | ({ type: 'exit' } & ProcessExit)

/** A process's output from a byte offset on: up to its exit, or to what there is now. Throws as `read` does. */
export async function* followOutput(
  processes: EnvironmentProcesses,
  pid: number,
  { offset, follow, signal }: { offset: number; follow: boolean; signal: AbortSignal },
): AsyncGenerator<OutputEvent, void> {
  const gathering = createGathering()
  for (let at = offset; ; ) {
    const batch = await processes.read(pid, at, { wait: follow, signal })
    if (batch.offset > at) yield { type: 'gap', offset: batch.offset }
    at = batch.offset
    const begin = at
    for (const { stream, bytes } of batch.pieces) {
      yield { type: stream, offset: at, bytes }
      at += bytes.byteLength
    }
    if (batch.exit) return yield { type: 'exit', ...batch.exit }
    if (!follow && batch.pieces.length === 0) return
    if (follow) await gathering(at - begin)
  }
}

/** Throws invalid_request for a name that is no signal's. */
export function parseSignal(name: string): NodeJS.Signals {
  const found = Object.keys(constants.signals).find(each => each === name || each === `SIG${name}`)
  if (!found) throw new ApiError('invalid_request', 'signal: no such signal', { field: 'signal' })
  return found as NodeJS.Signals
}
