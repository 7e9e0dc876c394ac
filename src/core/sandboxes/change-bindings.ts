import { writeWhenFree } from '../../db/busy.ts'
import { inTransaction } from '../../db/open.ts'
import { findSandbox, saveBindings } from '../../db/sandboxes.ts'
import { bindingsFor } from '../../egress/secrets/binding.ts'
import { ApiError } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { SecretBinding } from '../../model/secret.ts'
import type { Caller } from '../access/caller.ts'
import { keepChange } from '../access/keep-change.ts'
import type { Runtime } from '../runtime.ts'
import { assertMayBind, namesOfSecrets, rebindSecrets } from '../secrets/bind.ts'
import { boundSecretsOf } from '../secrets/bound-secrets.ts'
import { assertMayNarrow, mergeNetwork, type NetworkRequest } from './networks.ts'
import { assertStartable } from './program.ts'

/**
 * Replaces all bindings of a living sandbox, and its own network rules with them where the request has some. What programs send
 * from then on has the secrets of the new bindings alone; commands that begin later have their variables. Where the sandbox runs, its
 * stores have the authority before anything is bound. Throws as `bindSecrets` and `changeNetwork` do, and what the sandbox's
 * files throw; nothing has changed then.
 */
export async function changeBindings(
  runtime: Runtime,
  caller: Caller,
  { id, backend, environmentId }: Sandbox,
  { bindings, ...request }: NetworkRequest & { bindings: readonly SecretBinding[] },
): Promise<Sandbox> {
  assertMayBind(caller)
  const { db, networks, egress } = runtime
  if (request.networkAllowOut !== undefined || request.networkDenyOut !== undefined) assertMayNarrow(caller)
  const next = (): Sandbox => {
    const sandbox = findSandbox(db, caller.teamId, id)
    if (!sandbox) throw new ApiError('sandbox_not_found', 'There is no such sandbox.')
    const { secrets: former, ...network } = mergeNetwork(sandbox.network, request)
    const { secrets, envs } = rebindSecrets(runtime, caller, { backend, former, bindings, envs: sandbox.envs })
    assertStartable({ env: envs })
    return { ...sandbox, envs, network: { ...network, ...(secrets.length > 0 && { secrets }) } }
  }
  const planned = boundSecretsOf(db, caller.teamId, next().network.secrets ?? [])
  // Nothing runs in one that has stopped: its next start brings what it needs.
  const isStopped = runtime.environments.findRunning(backend)?.has(environmentId) === false
  if (planned.length > 0 && !isStopped) {
    using _held = runtime.environments.hold(environmentId)
    await runtime.trust.install(await runtime.environments.get({ backend, environmentId }), planned)
  }
  const before = networks.secretsOf(environmentId)
  const changed = await writeWhenFree(db, () =>
    inTransaction(db, () => {
      const sandbox = next()
      saveBindings(db, sandbox)
      const detail = { secrets: namesOfSecrets(sandbox).secrets ?? [] }
      keepChange(runtime, caller, { action: 'sandbox.bound', target: { sandboxId: id }, detail })
      return sandbox
    }),
  )
  const after = networks.secretsOf(environmentId)
  // A tunnel that is open already is not looked into, so that its host would never get the secret by it.
  egress.refresh(environmentId, ({ name, port }) => {
    return bindingsFor(before, name, port).length === 0 && bindingsFor(after, name, port).length > 0
  })
  return changed
}
