import { excerpt } from '../../bounds.ts'
import { agentEnv, findAgent } from '../../db/agents.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { lasting } from '../../db/lasting.ts'
import { inTransaction } from '../../db/open.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Deployment } from '../../model/deployment.ts'
import type { JsonObject } from '../../read/json.ts'
import type { Caller } from '../access/caller.ts'
import { keepChange } from '../access/keep-change.ts'
import { logAgent } from '../agents/agent-log.ts'
import { saveVersion } from '../agents/versions.ts'
import type { Runtime, StoredBundle } from '../runtime.ts'
import { assertMayChangeBindings } from '../secrets/bind.ts'
import { type Deployed, deployedAgent, isolationOfDeploy, parseHooks, parseTools } from './deployed-agent.ts'
import { inspectBundle } from './inspect-bundle.ts'

export interface DeployRequest {
  slug: string
  bundle: StoredBundle
  template: StoredBundle | undefined
  engine: string | undefined
  /** The client's description of the agent. Without one the bundle's own is used. */
  metadata: JsonObject | undefined
  sandboxConfig: JsonObject | undefined
  mcpConfig: JsonObject | undefined
}

/**
 * Makes a new version of an agent, and the agent when there is none; new sandboxes get it at once. Yields a line
 * for each step. Nothing is stored unless it returns.
 */
export async function* deployAgent(
  runtime: Runtime,
  caller: Caller,
  request: DeployRequest,
  signal: AbortSignal,
): AsyncGenerator<string, Deployment> {
  const { db, engines } = runtime
  const { teamId } = caller
  const { slug, bundle, template, metadata } = request
  const found = findAgent(db, teamId, slug)
  const env = found ? agentEnv(db, found.id) : {}
  assertRoomForVersion(runtime, teamId, slug)
  if (request.engine !== undefined && !engines.has(request.engine)) {
    throw new ApiError(
      'invalid_request',
      `engine: ${excerpt(request.engine)} is not here; ${[...engines.keys()].join(', ')} are`,
    )
  }
  try {
    yield `Loading the bundle of ${slug} in a sandbox…`
    const toAgent = (description: JsonObject | undefined) =>
      deployedAgent({ ...request, metadata: metadata ?? {}, description }, found, runtime)
    const inspection = {
      bundle: bundle.name,
      template: template?.name,
      env,
      sandbox: found?.sandbox,
      isolation: isolationOfDeploy({ ...request, metadata: metadata ?? {} }, found),
      toAgent,
    }
    const { description, problem, missing } = await inspectBundle(runtime, inspection, signal)
    // A bundle may want variables that can only be set once there is an agent: then its client's word is taken.
    if (!description && !metadata) throw new ApiError('setup_failed', `bundle: ${problem}`)
    signal.throwIfAborted()
    const deployed: Deployed = { ...request, metadata: metadata ?? {}, description }
    const tools = parseTools(deployed)
    const store = () => {
      assertRoomForVersion(runtime, teamId, slug)
      // Looked up again: the operator may have decided anew while the bundle was loaded.
      const current = findAgent(db, teamId, slug)
      const input = deployedAgent(deployed, current, runtime)
      assertMayChangeBindings(caller, current?.secrets, input.secrets)
      const files = {
        madeBy: 'deploy',
        tools,
        bundle: bundle.name,
        ...(template && { template: template.name }),
      } as const
      const deployment = saveVersion(db, teamId, input, files)
      const { version, agentId, id: deploymentId } = deployment
      const target = { agentId, agent: slug, deploymentId }
      keepChange(runtime, caller, { action: 'agent.deployed', target, detail: { version, bundle: bundle.name } })
      return { deployment, input }
    }
    const { deployment, input } = await writeWhenFree(db, () => inTransaction(db, store))
    await lasting(db)
    const hooks = parseHooks(deployed)
    const said: string[] = [
      `${slug} is at version ${deployment.version}, by the engine ${input.engine}, with ${tools.length} tools of its own.`,
      ...(hooks.length > 0 ? [`Not called here: ${hooks.join(', ')}.`] : []),
      ...(missing === undefined ? [] : [`${slug} cannot answer yet: ${missing}`]),
      ...(problem === undefined ? [] : [`The bundle could not be loaded yet: ${problem}`]),
    ]
    for (const text of said) {
      logAgent(db, deployment.agentId, { source: 'deploy', level: text === said[0] ? 'info' : 'warn', text }, env)
      yield text
    }
    return deployment
  } catch (error) {
    if (found) logAgent(db, found.id, { source: 'deploy', level: 'error', text: messageOf(error) }, env)
    throw error
  }
}

/** Throws rate_limit_exceeded when the team has as many agents, versions or bundles as it may have. */
function assertRoomForVersion({ db, teamLimits }: Runtime, teamId: string, slug: string): void {
  if (!findAgent(db, teamId, slug)) teamLimits.assertRoom(teamId, 'agents')
  teamLimits.assertRoom(teamId, 'versions')
  teamLimits.assertRoom(teamId, 'bundles')
}
