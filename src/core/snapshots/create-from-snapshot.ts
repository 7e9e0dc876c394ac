import { findAgent } from '../../db/agents.ts'
import { newId } from '../../db/id.ts'
import { ApiError } from '../../errors.ts'
import { strongestOf } from '../../model/isolation.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Snapshot } from '../../model/snapshot.ts'
import type { Caller } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import type { Runtime } from '../runtime.ts'
import { type BuiltSandbox, buildSandbox, type SandboxPlan } from '../sandboxes/build-sandbox.ts'
import { assertIsolation } from '../sandboxes/choose-backend.ts'
import type { OnCreateStep } from '../sandboxes/create-steps.ts'
import { networkOfCopy } from '../sandboxes/networks.ts'
import { observeCreate } from '../sandboxes/observe-create.ts'
import { assertStartable } from '../sandboxes/program.ts'
import { assertFreeName } from '../sandboxes/sandbox-names.ts'
import type { SandboxRequest } from '../sandboxes/sandboxes.ts'
import { bindCopy } from '../secrets/bind.ts'
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
  return await observeCreate(runtime, caller, { backend: snapshot.backend }, () =>
    makeCopy(runtime, caller, snapshot, request, options),
  )
}

async function makeCopy(
  runtime: Runtime,
  caller: Caller,
  snapshot: Snapshot,
  request: Omit<SandboxRequest, 'agent'>,
  { id = newId('sbx'), ...options }: CopyOptions,
): Promise<BuiltSandbox> {
  const { db, bundles } = runtime
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
  const { files = {}, setup: commands = [] } = request
  const isPrepared = commands.length > 0 || Object.keys(files).length > 0
  const timeoutMs = request.timeoutMs === undefined ? snapshot.timeoutMs : request.timeoutMs
  const externalUserId = request.externalUserId ?? snapshot.externalUserId
  const plan: SandboxPlan = {
    start: { backend, snapshot: snapshot.id, limits },
    isolation: [least],
    row: {
      ...{ id, teamId, agentSlug, agentName, envs, cwd },
      network: { ...rules, ...(bound.secrets.length > 0 && { secrets: bound.secrets }) },
      ...(timeoutMs != null && { timeoutMs }),
      ...(deploymentId !== undefined && { deploymentId }),
      ...(bundle !== undefined && { bundle }),
      ...(externalUserId !== undefined && { externalUserId }),
      ...(request.name !== undefined && { name: request.name }),
    },
    ...(isPrepared && {
      preparation: { agent: getAgent(runtime, caller, agentSlug), template: undefined, files, commands },
    }),
    store: request.store,
  }
  return await buildSandbox(runtime, caller, plan, options)
}
