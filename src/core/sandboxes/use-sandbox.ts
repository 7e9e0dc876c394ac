import type { Sandbox } from '../../model/sandbox.ts'
import type { Environment } from '../../plugin-api/index.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
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
  const { environments } = runtime
  const sandbox = getSandbox(runtime, caller, id)
  // Without a time to live nothing is to be written down.
  const hold = () => (sandbox.timeoutMs === undefined ? nothing : environments.hold(sandbox.environmentId))
  const held = hold()
  try {
    const environment = await environments.get(sandbox)
    return { sandbox, environment, hold, [Symbol.dispose]: () => held[Symbol.dispose]() }
  } catch (error) {
    held[Symbol.dispose]()
    throw error
  }
}
