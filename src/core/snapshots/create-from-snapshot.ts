import { findAgent } from '../../db/agents.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { settleEnvironment } from '../../db/environments.ts'
import { newId } from '../../db/id.ts'
import { inTransaction } from '../../db/open.ts'
import { insertSandbox } from '../../db/sandboxes.ts'
import { ApiError } from '../../errors.ts'
import { strongestOf } from '../../model/isolation.ts'
import type { Sandbox, SandboxInput } from '../../model/sandbox.ts'
import type { Snapshot } from '../../model/snapshot.ts'
import { type Caller, causeOf } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import type { Runtime } from '../runtime.ts'
import { abandonEnvironment } from '../sandboxes/abandon-environment.ts'
import { assertIsolation, assertReady, isolationOf } from '../sandboxes/choose-backend.ts'
import type { OnCreateStep } from '../sandboxes/create-steps.ts'
import { getEnvironment } from '../sandboxes/get-environment.ts'
import { networkLayers, networkOfCopy } from '../sandboxes/networks.ts'
import { assertStartable } from '../sandboxes/program.ts'
import { assertFreeName } from '../sandboxes/sandbox-names.ts'
import type { SandboxRequest } from '../sandboxes/sandboxes.ts'
import { setUp } from '../sandboxes/set-up.ts'
import { bindCopy, namesOfSecrets } from '../secrets/bind.ts'
import { readBindings } from '../secrets/bindings.ts'
import { getSnapshot } from './snapshots.ts'
import { snapshotsOf } from './take-snapshot.ts'

/** A create that takes its files from a snapshot, in place of its agent's own files and set-up. */
export interface SnapshotCreate extends Omit<SandboxRequest, 'agent'> {
  /** The snapshot's id or name. */
  snapshot: string
  /** The snapshot's agent; a create for another agent is refused. */
  agent?: string
}

export interface CopyOptions {
  signal?: AbortSignal
  onStep?: OnCreateStep
  /** The id of the new sandbox, when it was chosen before. */
  id?: string
  /** Called within the transaction that makes the sandbox. */
  onRow?: (sandbox: Sandbox) => void
}

/**
 * Makes a sandbox from a snapshot, with the snapshot's files, limits, variables, network rules and agent's tools. The request's
 * variables and rules replace those of the same name; its files are written and its set-up commands run. A failure on the way
 * fails the create, and nothing is left. Throws as `createSandbox` does, not_found, and invalid_request for another agent.
 */
export async function createFromSnapshot(
  runtime: Runtime,
  caller: Caller,
  { snapshot: idOrName, agent, ...request }: SnapshotCreate,
  options: CopyOptions = {},
): Promise<Sandbox> {
  const snapshot = getSnapshot(runtime, caller, idOrName)
  if (agent !== undefined && agent !== snapshot.agentSlug) {
    const text = `agent: the snapshot is of a sandbox of the agent ${snapshot.agentSlug}`
    throw new ApiError('invalid_request', text, { field: 'agent' })
  }
  return await copySandbox(runtime, caller, snapshot, request, options)
}

/** Does the same for a snapshot that the caller is known to be allowed to use. */
export async function copySandbox(
  runtime: Runtime,
  caller: Caller,
  snapshot: Snapshot,
  request: Omit<SandboxRequest, 'agent'>,
  options: CopyOptions = {},
): Promise<Sandbox> {
  const { observers } = runtime
  const begunAtMs = performance.now()
  const { teamId, backend, agentSlug } = snapshot
  const ended = () => ({ teamId, backend, durationMs: performance.now() - begunAtMs, cause: causeOf(caller) })
  try {
    const sandbox = await makeCopy(runtime, caller, snapshot, request, options)
    const { id: sandboxId, environmentId } = sandbox
    const made = { sandboxId, environmentId, agentSlug, isSpare: false, ...namesOfSecrets(sandbox) }
    observers.observe({ type: 'sandbox.created', ...ended(), ...made })
    return sandbox
  } catch (error) {
    const code = error instanceof ApiError ? error.code : 'internal_error'
    observers.observe({ type: 'sandbox.failed', ...ended(), code })
    throw error
  }
}

async function makeCopy(
  runtime: Runtime,
  caller: Caller,
  snapshot: Snapshot,
  request: Omit<SandboxRequest, 'agent'>,
  { signal, onStep, id = newId('sbx'), onRow }: CopyOptions,
): Promise<Sandbox> {
  const { db, config, networks, trust, egress, bundles } = runtime
  const { teamId, backend, agentSlug, agentName, cwd, deploymentId, bundle, limits } = snapshot
  snapshotsOf(runtime, backend)
  assertFreeName(runtime, caller, request.name)
  // Files stay on their backend, so a copy is isolated as that backend does it with them, or it is refused.
  const least = strongestOf(findAgent(db, teamId, agentSlug)?.sandbox.isolation, request.isolation)
  await assertIsolation(runtime, { backend, snapshot: snapshot.id }, least)
  using _place = runtime.teamLimits.holdSandbox(teamId)
  using _held = bundles.hold(bundle)
  const own = readBindings('secrets', request.secrets)
  const bound = bindCopy(runtime, caller, { backend, kept: snapshot.network.secrets, variables: snapshot.envs, own })
  const envs = { ...bound.variables, ...request.envs, ...bound.ownVariables }
  assertStartable({ env: envs })
  const rules = networkOfCopy(caller, snapshot.network, request)
  const network = { ...rules, ...(bound.secrets.length > 0 && { secrets: bound.secrets }) }
  const { files = {}, setup: commands = [] } = request
  const isFurnished = commands.length > 0 || Object.keys(files).length > 0
  const agent = isFurnished ? getAgent(runtime, caller, agentSlug) : undefined
  const timeoutMs = request.timeoutMs === undefined ? snapshot.timeoutMs : request.timeoutMs
  const externalUserId = request.externalUserId ?? snapshot.externalUserId
  await assertReady(runtime, backend)
  void onStep?.({ type: 'stage', stage: 'environment' })
  const start = { backend, snapshot: snapshot.id, limits }
  const { environment } = await getEnvironment(
    runtime,
    { ...start, env: envs, network: { mode: config.network, layers: networkLayers(network) } },
    onStep && (progress => void onStep({ type: 'progress', ...progress })),
  )
  const place = { backend, environmentId: environment.id }
  // Set-up commands run before the sandbox has a row from which its rules could be read.
  networks.prepare(place.environmentId, network, teamId)
  try {
    await assertIsolation(runtime, { backend, environment }, least)
    if (agent) {
      const options = { template: undefined, files, cwd, env: envs, commands }
      const isThroughServer = runtime.backends.get(backend)?.egress !== 'own'
      await setUp(runtime, agent, isThroughServer ? await trust.prepare(environment) : environment, {
        ...options,
        ...(signal && { signal }),
        ...(onStep && { onStep }),
      })
      await environment.sync?.()
    }
    signal?.throwIfAborted()
    const isolation = isolationOf(runtime, { backend, environment })
    const row: SandboxInput = {
      ...{ id, teamId, agentSlug, agentName, status: 'active', envs, cwd, network },
      ...place,
      ...(isolation && { isolation }),
      ...(timeoutMs != null && { timeoutMs }),
      ...(deploymentId !== undefined && { deploymentId }),
      ...(bundle !== undefined && { bundle }),
      ...(externalUserId !== undefined && { externalUserId }),
      ...(request.name !== undefined && { name: request.name }),
    }
    return await writeWhenFree(db, () =>
      inTransaction(db, () => {
        assertFreeName(runtime, caller, request.name)
        settleEnvironment(db, place.environmentId)
        const sandbox = insertSandbox(db, row)
        onRow?.(sandbox)
        request.store?.(sandbox)
        return sandbox
      }),
    )
  } catch (error) {
    await abandonEnvironment(runtime, place)
    egress.forget(place.environmentId)
    throw error
  } finally {
    networks.prepare(place.environmentId)
  }
}
