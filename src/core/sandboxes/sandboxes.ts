import { agentEnv } from '../../db/agents.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { findDeployment } from '../../db/deployments.ts'
import { beginEnvironment, settleEnvironment } from '../../db/environments.ts'
import { newId } from '../../db/id.ts'
import { lasting } from '../../db/lasting.ts'
import { inTransaction } from '../../db/open.ts'
import { deleteSandbox, findSandbox, insertSandbox, listSandboxes } from '../../db/sandboxes.ts'
import { assertLimits } from '../../environment/least-limits.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Sandbox, SandboxInput } from '../../model/sandbox.ts'
import type { Limits } from '../../plugin-api/index.ts'
import { assertAgent, type Caller } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import { pickStart } from '../agents/operator-choices.ts'
import type { Runtime } from '../runtime.ts'
import { type NetworkRequest, narrowNetwork, networkLayers } from './networks.ts'
import { assertStartable } from './program.ts'
import { DEFAULT_CWD, setUp } from './set-up.ts'

export interface SandboxRequest extends NetworkRequest {
  agent: string
  files?: Record<string, string>
  envs?: Record<string, string>
  setup?: string[]
  /** Time to live since the last use. */
  timeoutMs?: number
  /** The end user it is for; a token's own user wins. */
  externalUserId?: string
}

/**
 * Makes an environment, unpacks the agent's archive, writes its files and the request's over them, then runs the agent's
 * set-up commands and the request's. What fails on the way fails the create, and nothing is left.
 */
export async function createSandbox(
  runtime: Runtime,
  caller: Caller,
  request: SandboxRequest,
  signal?: AbortSignal,
): Promise<Sandbox> {
  const { db, config, environments, networks, egress, bundles } = runtime
  const agent = getAgent(runtime, caller, request.agent)
  await runtime.diskSpace.assertEnough()
  const defaults = agent.sandbox
  const deployment = agent.deploymentId === undefined ? undefined : findDeployment(db, agent.deploymentId)
  const bundle = deployment && deployment.tools.length > 0 ? deployment.bundle : undefined
  // The version may be removed while this goes on.
  using _held = bundles.hold(bundle, deployment?.template)
  const envs = { ...defaults.envs, ...agentEnv(db, agent.id), ...request.envs }
  assertStartable({ env: envs })
  const timeoutMs = request.timeoutMs ?? defaults.timeoutMs
  const cwd = defaults.cwd ?? DEFAULT_CWD
  const userId = caller.token?.userId ?? request.externalUserId
  const network = narrowNetwork(caller, agent.options, request)
  const files = { ...defaults.files, ...request.files }
  const commands = [...defaults.setup, ...(request.setup ?? [])]
  const limits = withoutZeroLimits({
    ...config.limits,
    ...(agent.deploymentId === undefined ? defaults.limits : capLimits(defaults.limits, config.limits)),
  })
  assertLimits(limits)
  const place = { backend: config.backend, environmentId: newId('env') }
  await writeWhenFree(db, () => beginEnvironment(db, place))
  const environment = await environments
    .create({
      id: place.environmentId,
      backend: place.backend,
      limits,
      env: envs,
      network: { mode: config.network, layers: networkLayers(network) },
      ...pickStart(defaults),
    })
    .catch(async error => {
      await settle(runtime, place.environmentId)
      throw error
    })
  // Set-up commands run before there is a row to find the rules in.
  networks.prepare(place.environmentId, network)
  try {
    await setUp(runtime, agent, environment, {
      template: deployment?.template,
      files,
      cwd,
      env: envs,
      commands,
      ...(signal && { signal }),
    })
    signal?.throwIfAborted()
    const row: SandboxInput = {
      id: newId('sbx'),
      teamId: caller.teamId,
      agentSlug: agent.slug,
      agentName: agent.name,
      status: 'active',
      envs,
      cwd,
      network,
      ...place,
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(agent.deploymentId !== undefined && { deploymentId: agent.deploymentId }),
      ...(bundle !== undefined && { bundle }),
      ...(userId !== undefined && { externalUserId: userId }),
    }
    const isFurnished = deployment?.template !== undefined || commands.length > 0 || Object.keys(files).length > 0
    if (isFurnished) await environment.sync?.()
    signal?.throwIfAborted()
    return await writeWhenFree(db, () =>
      inTransaction(db, () => {
        settleEnvironment(db, place.environmentId)
        return insertSandbox(db, row)
      }),
    )
  } catch (error) {
    await environments.destroy(place)
    await settle(runtime, place.environmentId)
    egress.forget(place.environmentId)
    throw error
  } finally {
    networks.prepare(place.environmentId)
  }
}

/** Notes that an environment is gone. When the note cannot be written, as on a full disk, the next start removes it. */
const settle = ({ db, log }: Runtime, environmentId: string): Promise<void> =>
  writeWhenFree(db, () => settleEnvironment(db, environmentId)).catch(error =>
    log(`${environmentId}: ${messageOf(error)}`),
  )

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
  page: { limit: number; before?: string },
): Sandbox[] {
  const { agents, userId } = caller.token ?? {}
  return listSandboxes(db, caller.teamId, {
    ...page,
    ...(agents && { agents }),
    ...(userId !== undefined && { userId }),
  })
}

/** Removes all of a sandbox: runs, threads, processes, files. Nothing of it is left when this resolves. */
export async function removeSandbox(runtime: Runtime, sandbox: Sandbox): Promise<void> {
  const { db, runs, environments, egress, bundles } = runtime
  await runs.silence(sandbox.id)
  // The row goes first: what is left of its environment is swept at the next start, should the server die here.
  await writeWhenFree(db, () =>
    inTransaction(db, () => {
      beginEnvironment(db, sandbox)
      deleteSandbox(db, sandbox.id)
    }),
  )
  await lasting(db)
  await environments.destroy(sandbox)
  await settle(runtime, sandbox.environmentId)
  egress.forget(sandbox.environmentId)
  if (sandbox.bundle !== undefined) await bundles.removeUnused()
}

/** A deployed agent gets no more than the operator gives a sandbox: its zero, for no limit, is the operator's limit. */
const capLimits = (asked: Limits, most: Limits): Limits =>
  Object.fromEntries(
    Object.entries(asked).map(([name, limit]) => {
      const bound = most[name as keyof Limits]
      return [name, bound ? Math.min(limit || bound, bound) : limit]
    }),
  )

/** Zero is no limit. */
export const withoutZeroLimits = (limits: Limits): Limits =>
  Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit > 0))
