import { excerpt } from '../../bounds.ts'
import { agentEnv, findAgent, saveAgent } from '../../db/agents.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { insertDeployment } from '../../db/deployments.ts'
import { lasting } from '../../db/lasting.ts'
import { inTransaction } from '../../db/open.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Deployment } from '../../model/deployment.ts'
import type { JsonObject } from '../../read/json.ts'
import type { Caller } from '../access/caller.ts'
import { logAgent } from '../agents/agent-log.ts'
import type { Runtime, StoredBundle } from '../runtime.ts'
import { type Deployed, deployedAgent, parseHooks, parseTools } from './deployed-agent.ts'
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
  { teamId }: Caller,
  request: DeployRequest,
  signal: AbortSignal,
): AsyncGenerator<string, Deployment> {
  const { db, engines } = runtime
  const { slug, bundle, template, metadata } = request
  const found = findAgent(db, teamId, slug)
  const env = found ? agentEnv(db, found.id) : {}
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
      toAgent,
    }
    const { description, problem, missing } = await inspectBundle(runtime, inspection, signal)
    // A bundle may want variables that can only be set once there is an agent: then its client's word is taken.
    if (!description && !metadata) throw new ApiError('setup_failed', `bundle: ${problem}`)
    signal.throwIfAborted()
    const deployed: Deployed = { ...request, metadata: metadata ?? {}, description }
    const tools = parseTools(deployed)
    const store = () => {
      // Looked up again: the operator may have decided anew while the bundle was loaded.
      const input = deployedAgent(deployed, findAgent(db, teamId, slug), runtime)
      const { id: agentId } = saveAgent(db, teamId, input)
      const made = insertDeployment(db, {
        ...{ agentId, definition: input, tools, bundle: bundle.name },
        ...(template && { template: template.name }),
      })
      return { agent: saveAgent(db, teamId, { ...input, deploymentId: made.id }), deployment: made, input }
    }
    const { agent, deployment, input } = await writeWhenFree(db, () => inTransaction(db, store))
    await lasting(db)
    const hooks = parseHooks(deployed)
    const said: string[] = [
      `${slug} is at version ${deployment.version}, by the engine ${input.engine}, with ${tools.length} tools of its own.`,
      ...(hooks.length > 0 ? [`Not called here: ${hooks.join(', ')}.`] : []),
      ...(missing === undefined ? [] : [`${slug} cannot answer yet: ${missing}`]),
      ...(problem === undefined ? [] : [`The bundle could not be loaded yet: ${problem}`]),
    ]
    for (const text of said) {
      logAgent(db, agent.id, { source: 'deploy', level: text === said[0] ? 'info' : 'warn', text }, env)
      yield text
    }
    return deployment
  } catch (error) {
    if (found) logAgent(db, found.id, { source: 'deploy', level: 'error', text: messageOf(error) }, env)
    throw error
  }
}
