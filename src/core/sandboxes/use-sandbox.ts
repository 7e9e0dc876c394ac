import type { Sandbox } from '../../model/sandbox.ts'
import type { Environment } from '../../plugin-api/index.ts'
import { type Caller, causeOf } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { observeFiles } from './observed-files.ts'
import { getSandbox } from './sandboxes.ts'

/** A sandbox in use. Its time to live stands still until this is disposed of, and then starts again. */
export interface SandboxUse extends Disposable {
  sandbox: Sandbox
  environment: Environment
  /** Keeps the sandbox in use for what goes on after this is disposed of, such as the body of an answer. */
  hold(): Disposable
}

const nothing: Disposable = { [Symbol.dispose]() {} }

/** Opens a sandbox that the caller may use. Throws as `getSandbox` does, and sandbox_unavailable. */
export async function useSandbox(runtime: Runtime, caller: Caller, id: string): Promise<SandboxUse> {
  const { environments, spares } = runtime
  const sandbox = getSandbox(runtime, caller, id)
  spares.defer()
  // Without a time to live nothing is to be written down.
  const hold = () => (sandbox.timeoutMs === undefined ? nothing : environments.hold(sandbox.environmentId))
  const held = hold()
  try {
    const work = { teamId: sandbox.teamId, sandboxId: sandbox.id, cause: causeOf(caller) }
    const environment = observeFiles(runtime, work, await environments.get(sandbox))
    return { sandbox, environment, hold, [Symbol.dispose]: () => held[Symbol.dispose]() }
  } catch (error) {
    held[Symbol.dispose]()
    throw error
  }
}
