import { agentEnv } from '../../db/agents.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { beginEnvironment, settleEnvironment } from '../../db/environments.ts'
import { newId } from '../../db/id.ts'
import { lasting } from '../../db/lasting.ts'
import { inTransaction } from '../../db/open.ts'
import { deleteSandbox, findSandbox, insertSandbox, listSandboxes } from '../../db/sandboxes.ts'
import { assertLimits } from '../../environment/least-limits.ts'
import { ApiError, isNoSpace } from '../../errors.ts'
import type { Agent } from '../../model/agent.ts'
import type { Sandbox, SandboxInput } from '../../model/sandbox.ts'
import type { Isolation } from '../../plugin-api/index.ts'
import { assertAgent, type Caller, causeOf } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import { findActive } from '../agents/versions.ts'
import type { Runtime } from '../runtime.ts'
import { bindSecrets, namesOfSecrets } from '../secrets/bind.ts'
import { type GivenBindings, readBindings } from '../secrets/bindings.ts'
import { abandonEnvironment, noteGone } from './abandon-environment.ts'
import { assertIsolation, assertReady, chooseBackend, isolationOf } from './choose-backend.ts'
import type { OnCreateStep } from './create-steps.ts'
import { toStart } from './environment-start.ts'
import { getEnvironment } from './get-environment.ts'
import { type NetworkRequest, narrowNetwork, networkLayers } from './networks.ts'
import { assertStartable } from './program.ts'
import { releaseSnapshots } from './release-snapshots.ts'
import { assertFreeName } from './sandbox-names.ts'
import { DEFAULT_CWD, setUp } from './set-up.ts'

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
  const { observers } = runtime
  let { backend } = runtime.config
  const begunAtMs = performance.now()
  const ended = () => ({
    teamId: caller.teamId,
    backend,
    durationMs: performance.now() - begunAtMs,
    cause: causeOf(caller),
  })
  try {
    const agent = getAgent(runtime, caller, request.agent)
    const chosen = chooseBackend(runtime, agent.sandbox, agent.sandbox.isolation, request.isolation)
    backend = chosen.backend
    const make = { ...request, agent, chosen, id }
    const { sandbox, isSpare } = await makeSandbox(runtime, caller, make, signal, onStep)
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

interface NewSandbox {
  id: string
  agent: Agent
  chosen: ReturnType<typeof chooseBackend>
}

async function makeSandbox(
  runtime: Runtime,
  caller: Caller,
  { id, agent, chosen, ...request }: Omit<SandboxRequest, 'agent'> & NewSandbox,
  signal?: AbortSignal,
  onStep?: OnCreateStep,
): Promise<{ sandbox: Sandbox; isSpare: boolean }> {
  const { db, config, networks, trust, egress, bundles } = runtime
  const { backend } = chosen
  assertFreeName(runtime, caller, request.name)
  using _place = runtime.teamLimits.holdSandbox(caller.teamId)
  const defaults = agent.sandbox
  const deployment = findActive(db, agent)
  const bundle = deployment && deployment.tools.length > 0 ? deployment.bundle : undefined
  // The version may be removed while this goes on.
  using _held = bundles.hold(bundle, deployment?.template)
  const bound = bindSecrets(runtime, caller, backend, agent.secrets, readBindings('secrets', request.secrets))
  const variables = { ...defaults.envs, ...agentEnv(db, agent.id), ...bound.agentVariables }
  const envs = { ...variables, ...request.envs, ...bound.ownVariables }
  assertStartable({ env: envs })
  const timeoutMs = request.timeoutMs === undefined ? defaults.timeoutMs : request.timeoutMs
  const cwd = defaults.cwd ?? DEFAULT_CWD
  const userId = caller.token?.userId ?? request.externalUserId
  const rules = narrowNetwork(caller, agent.options, request)
  const network = { ...rules, ...(bound.secrets.length > 0 && { secrets: bound.secrets }) }
  const files = { ...defaults.files, ...request.files }
  const commands = [...defaults.setup, ...(request.setup ?? [])]
  const start = {
    ...toStart({ ...config, ...chosen }, agent),
    ...(request.base !== undefined && { base: request.base }),
  }
  assertLimits(start.limits)
  await assertReady(runtime, backend)
  void onStep?.({ type: 'stage', stage: 'environment' })
  const { environment, isSpare } = await getEnvironment(
    runtime,
    { ...start, env: envs, network: { mode: config.network, layers: networkLayers(network) } },
    onStep && (progress => void onStep({ type: 'progress', ...progress })),
  )
  const place = { backend, environmentId: environment.id }
  // Set-up commands run before there is a row to find the rules in.
  networks.prepare(place.environmentId, network, caller.teamId)
  try {
    await assertIsolation(runtime, { backend, environment }, defaults.isolation, request.isolation)
    const isThroughServer = runtime.backends.get(place.backend)?.egress !== 'own'
    await setUp(runtime, agent, isThroughServer ? await trust.prepare(environment) : environment, {
      template: deployment?.template,
      files,
      cwd,
      env: envs,
      commands,
      ...(signal && { signal }),
      ...(onStep && { onStep }),
    })
    signal?.throwIfAborted()
    const isolation = isolationOf(runtime, { backend, environment })
    const row: SandboxInput = {
      id,
      teamId: caller.teamId,
      agentSlug: agent.slug,
      agentName: agent.name,
      status: 'active',
      envs,
      cwd,
      network,
      ...place,
      ...(isolation && { isolation }),
      ...(timeoutMs != null && { timeoutMs }),
      // A sandbox follows the operator's file unless another version is active.
      ...(deployment && deployment.madeBy !== 'apply' && { deploymentId: deployment.id }),
      ...(bundle !== undefined && { bundle }),
      ...(userId !== undefined && { externalUserId: userId }),
      ...(request.name !== undefined && { name: request.name }),
    }
    const isFurnished = deployment?.template !== undefined || commands.length > 0 || Object.keys(files).length > 0
    if (isFurnished) await environment.sync?.()
    signal?.throwIfAborted()
    const sandbox = await writeWhenFree(db, () =>
      inTransaction(db, () => {
        // Another create may have taken the name meanwhile.
        assertFreeName(runtime, caller, request.name)
        settleEnvironment(db, place.environmentId)
        const stored = insertSandbox(db, row)
        request.store?.(stored)
        return stored
      }),
    )
    return { sandbox, isSpare }
  } catch (error) {
    await abandonEnvironment(runtime, place)
    egress.forget(place.environmentId)
    throw error
  } finally {
    networks.prepare(place.environmentId)
  }
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
