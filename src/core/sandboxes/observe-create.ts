import { ApiError } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import { type Caller, causeOf } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { namesOfSecrets } from '../secrets/bind.ts'
import type { BuiltSandbox } from './build-sandbox.ts'

/**
 * Makes a sandbox with `create`, and reports that it was made or why it was not. The report of a failure names the backend that
 * `create` has set last.
 */
export async function observeCreate(
  { observers }: Pick<Runtime, 'observers'>,
  caller: Caller,
  attempt: { backend: string },
  create: () => Promise<BuiltSandbox>,
): Promise<Sandbox> {
  const { teamId } = caller
  const begunAtMs = performance.now()
  const ended = () => ({
    ...{ teamId, backend: attempt.backend, cause: causeOf(caller) },
    durationMs: performance.now() - begunAtMs,
  })
  try {
    const { sandbox, isSpare } = await create()
    const { id: sandboxId, environmentId, agentSlug } = sandbox
    const made = { sandboxId, environmentId, agentSlug, isSpare, ...namesOfSecrets(sandbox) }
    observers.observe({ type: 'sandbox.created', ...ended(), ...made })
    return sandbox
  } catch (error) {
    const code = error instanceof ApiError ? error.code : 'internal_error'
    observers.observe({ type: 'sandbox.failed', ...ended(), code })
    throw error
  }
}
