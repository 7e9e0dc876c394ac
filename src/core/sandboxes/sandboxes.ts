import { agentEnv } from '../../db/agents.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { beginEnvironment } from '../../db/environments.ts'
import { newId } from '../../db/id.ts'
import { lasting } from '../../db/lasting.ts'
import { inTransaction } from '../../db/open.ts'
import { deleteSandbox, findSandbox, listSandboxes } from '../../db/sandboxes.ts'
import { assertLimits } from '../../environment/least-limits.ts'
import { ApiError, isNoSpace } from '../../errors.ts'
import type { Agent } from '../../model/agent.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Isolation } from '../../plugin-api/index.ts'
import { assertAgent, type Caller, causeOf } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import { findActive } from '../agents/versions.ts'
import type { Runtime } from '../runtime.ts'
import { bindSecrets } from '../secrets/bind.ts'
import { type GivenBindings, readBindings } from '../secrets/bindings.ts'
import { noteGone } from './abandon-environment.ts'
import { type BuildOptions, type BuiltSandbox, buildSandbox, type SandboxPlan } from './build-sandbox.ts'
import { chooseBackend } from './choose-backend.ts'
import type { OnCreateStep } from './create-steps.ts'
import { toStart } from './environment-start.ts'
import { type NetworkRequest, narrowNetwork } from './networks.ts'
import { observeCreate } from './observe-create.ts'
import { assertStartable } from './program.ts'
import { releaseSnapshots } from './release-snapshots.ts'
import { assertFreeName } from './sandbox-names.ts'
import { DEFAULT_CWD } from './set-up.ts'

export interface SandboxRequest extends NetworkRequest {
  agent: string
  files?: Record<string, string>
  envs?: Record<string, string>
  setup?: string[]
  /** The base that the sandbox starts from, in place of its agent's. */
  base?: string
  /** The name by which another process finds the sandbox. It is unique in the team. */
  name?: string
  /** Time to live since the last use. Null means none, whatever its agent says. */
  timeoutMs?: number | null
  /** The end user it is for; a token's own user wins. */
  externalUserId?: string
  /** Stores what belongs to the new sandbox, in the transaction that stores the sandbox itself. */
  store?(sandbox: Sandbox): void
  /** The least isolation that is wanted. What the agent asks for applies too. */
  isolation?: Isolation
  /** Added to the agent's bindings; one for the same place replaces the agent's. */
  secrets?: GivenBindings
}

/**
 * Makes an environment, unpacks the agent's archive, writes its files and the request's over them, then runs the agent's
 * set-up commands and the request's. What fails on the way fails the create, and nothing is left. `onStep` is called once
 * the request is found to be good. `id`: of the new sandbox, when it was chosen before.
 */
export async function createSandbox(
  runtime: Runtime,
  caller: Caller,
  request: SandboxRequest,
  signal?: AbortSignal,
  onStep?: OnCreateStep,
  id = newId('sbx'),
): Promise<Sandbox> {
  const attempt = { backend: runtime.config.backend }
  return await observeCreate(runtime, caller, attempt, async () => {
    const agent = getAgent(runtime, caller, request.agent)
    const chosen = chooseBackend(runtime, agent.sandbox, agent.sandbox.isolation, request.isolation)
    attempt.backend = chosen.backend
    return await makeSandbox(runtime, caller, { ...request, agent, chosen, id }, { signal, onStep })
  })
}

interface NewSandbox {
  id: string
  agent: Agent
  chosen: ReturnType<typeof chooseBackend>
}

async function makeSandbox(
  runtime: Runtime,
  caller: Caller,
  { id, agent, chosen, ...request }: Omit<SandboxRequest, 'agent'> & NewSandbox,
  options: BuildOptions,
): Promise<BuiltSandbox> {
  const { db, config, bundles } = runtime
  assertFreeName(runtime, caller, request.name)
  using _place = runtime.teamLimits.holdSandbox(caller.teamId)
  const defaults = agent.sandbox
  const deployment = findActive(db, agent)
  const bundle = deployment && deployment.tools.length > 0 ? deployment.bundle : undefined
  const template = deployment?.template
  // The version may be removed while this goes on.
  using _held = bundles.hold(bundle, template)
  const bound = bindSecrets(runtime, caller, chosen.backend, agent.secrets, readBindings('secrets', request.secrets))
  const variables = { ...defaults.envs, ...agentEnv(db, agent.id), ...bound.agentVariables }
  const envs = { ...variables, ...request.envs, ...bound.ownVariables }
  assertStartable({ env: envs })
  const timeoutMs = request.timeoutMs === undefined ? defaults.timeoutMs : request.timeoutMs
  const userId = caller.token?.userId ?? request.externalUserId
  const rules = narrowNetwork(caller, agent.options, request)
  const start = {
    ...toStart({ ...config, ...chosen }, agent),
    ...(request.base !== undefined && { base: request.base }),
  }
  assertLimits(start.limits)
  const plan: SandboxPlan = {
    start,
    isolation: [defaults.isolation, request.isolation],
    row: {
      ...{ id, teamId: caller.teamId, agentSlug: agent.slug, agentName: agent.name, envs },
      cwd: defaults.cwd ?? DEFAULT_CWD,
      network: { ...rules, ...(bound.secrets.length > 0 && { secrets: bound.secrets }) },
      ...(timeoutMs != null && { timeoutMs }),
      // A sandbox follows the operator's file unless another version is active.
      ...(deployment && deployment.madeBy !== 'apply' && { deploymentId: deployment.id }),
      ...(bundle !== undefined && { bundle }),
      ...(userId !== undefined && { externalUserId: userId }),
      ...(request.name !== undefined && { name: request.name }),
    },
    preparation: {
      agent,
      template,
      files: { ...defaults.files, ...request.files },
      commands: [...defaults.setup, ...(request.setup ?? [])],
    },
    store: request.store,
  }
  return await buildSandbox(runtime, caller, plan, options)
}

/** Found by its id or its environment's. Throws sandbox_not_found for one of another team or user. */
export function getSandbox({ db }: Runtime, caller: Caller, id: string): Sandbox {
  const sandbox = findSandbox(db, caller.teamId, id)
  const userId = caller.token?.userId
  if (!sandbox || (userId !== undefined && sandbox.externalUserId !== userId)) {
    throw new ApiError('sandbox_not_found', 'There is no such sandbox.')
  }
  assertAgent(caller, sandbox.agentSlug)
  return sandbox
}

/** A page of what the caller may see, newest first. */
export function listVisibleSandboxes(
  { db }: Runtime,
  caller: Caller,
  { agent, ...page }: { limit: number; before?: string; agent?: string; search?: string; name?: string },
): Sandbox[] {
  const { agents = agent === undefined ? undefined : [agent], userId } = caller.token ?? {}
  return listSandboxes(db, caller.teamId, {
    ...page,
    ...(agents && { agents: agents.filter(slug => agent === undefined || slug === agent) }),
    ...(userId !== undefined && { userId }),
  })
}

/**
 * Removes a sandbox with its runs, threads, processes and files. Nothing of it is left when this resolves. There is no caller
 * when its time to live has passed.
 */
export async function removeSandbox(runtime: Runtime, sandbox: Sandbox, caller?: Caller): Promise<void> {
  const { db, runs, environments, egress, bundles, observers } = runtime
  const begunAtMs = performance.now()
  await runs.silence(sandbox.id)
  const removeRow = () =>
    writeWhenFree(db, () =>
      inTransaction(db, () => {
        // The rows that this frees make room for the rest.
        deleteSandbox(db, sandbox.id)
        beginEnvironment(db, sandbox)
      }),
    )
  // The row goes first: what is left of its environment is swept at the next start, should the server die here.
  await removeRow().catch(async error => {
    if (!isNoSpace(error)) throw error
    // On a full disk, removing the files makes the room. A sandbox without files can be removed again.
    await environments.destroy(sandbox)
    await removeRow()
  })
  await lasting(db)
  await environments.destroy(sandbox)
  await noteGone(runtime, sandbox.environmentId)
  egress.forget(sandbox.environmentId)
  const { id: sandboxId, teamId, backend } = sandbox
  const cause = caller && { cause: causeOf(caller) }
  observers.observe({
    type: 'sandbox.deleted',
    ...{ teamId, sandboxId, backend, ...cause, durationMs: performance.now() - begunAtMs },
  })
  if (sandbox.bundle !== undefined) await bundles.removeUnused()
  await releaseSnapshots(runtime)
}
