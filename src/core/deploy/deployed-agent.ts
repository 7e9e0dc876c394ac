import { excerpt } from '../../bounds.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Agent, AgentInput } from '../../model/agent.ts'
import type { DeployedTool } from '../../model/deployment.ts'
import { isIsolation, strongestOf } from '../../model/isolation.ts'
import type { Engine, Isolation } from '../../plugin-api/index.ts'
import { isObject, type JsonObject, objectOf, objectsOf } from '../../read/json.ts'
import { readAgent } from '../agents/agent-files.ts'
import type { Runtime } from '../runtime.ts'

/** The descriptions of an agent that a deploy has, by each of its sources. Nothing of it is checked yet. */
export interface Deployed {
  slug: string
  /** An engine by name, instead of the one that the agent's runtime stands for. */
  engine: string | undefined
  /** By the client that deploys. */
  metadata: JsonObject
  sandboxConfig: JsonObject | undefined
  mcpConfig: JsonObject | undefined
  /** By the bundle itself; undefined when it could not be loaded here. */
  description: JsonObject | undefined
}

/**
 * The agent that a deploy makes, in the terms of an agent file. What the operator alone may decide stays as `found` has
 * it: what sandboxes start from, and what the agent may spend in all. Throws invalid_request that names the field.
 */
export function deployedAgent(
  deployed: Deployed,
  found: Agent | undefined,
  { engines, config }: Pick<Runtime, 'engines' | 'config'>,
): AgentInput {
  const { slug, metadata, description = {} } = deployed
  const said = { ...description, ...metadata }
  const sandbox = { ...objectOf(said.sandbox), ...deployed.sandboxConfig }
  // A client fills in a model when the agent's author named no model.
  const model = deployed.description ? deployed.description.model : metadata.model
  const { base, image, template } = found?.sandbox ?? {}
  const file = {
    slug,
    name: found?.name ?? slug,
    engine: deployed.engine ?? chooseEngine(said.runtime, engines, config.runtimes),
    model: model === 'unknown' ? undefined : model,
    systemPrompt: isObject(said.systemPrompt) ? said.systemPrompt.append : said.systemPrompt,
    options: {
      maxTurns: said.maxTurns,
      maxBudgetUsd: said.maxBudgetUsd,
      maxSandboxBudgetUsd: said.maxSandboxBudgetUsd,
      maxAgentBudgetUsd: found?.options.maxAgentBudgetUsd,
      permissionMode: said.permissionMode,
      mcpServers: parseMcpServers(said.mcpServers, deployed.mcpConfig),
      networkAllowOut: sandbox.networkAllowOut,
      networkDenyOut: sandbox.networkDenyOut,
      acp: found?.options.acp,
      ...permissionOptions(said, found),
    },
    secrets: sandbox.secrets ?? said.secrets ?? found?.secrets,
    sandbox: {
      files: sandbox.files,
      setup: [...installPackages(sandbox.apt), ...toList(sandbox.build), ...toList(sandbox.setup)],
      cwd: sandbox.cwd,
      timeoutMs: sandbox.timeoutMs,
      limits: { memoryMb: sandbox.memoryMB, cpus: sandbox.cpuCount },
      isolation: isolationIn(sandbox, found),
      ...{ base, image, template },
    },
  }
  try {
    // This leaves out the fields that are undefined.
    return readAgent(JSON.parse(JSON.stringify(file)))
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError('invalid_request', messageOf(error))
  }
}

/** The least isolation of a deploy's sandboxes, as far as it is known before the bundle is loaded. */
export const isolationOfDeploy = (
  { metadata, sandboxConfig }: Pick<Deployed, 'metadata' | 'sandboxConfig'>,
  found: Agent | undefined,
): Isolation | undefined => {
  const isolation = isolationIn({ ...objectOf(metadata.sandbox), ...sandboxConfig }, found)
  return isIsolation(isolation) ? isolation : undefined
}

/**
 * The stronger of what the deploy asks for and what the agent had. A text that names no class is returned as it is: the check of
 * the whole agent refuses it.
 */
const isolationIn = ({ isolation }: JsonObject, found: Agent | undefined): unknown =>
  isolation === undefined || isIsolation(isolation) ? strongestOf(isolation, found?.sandbox.isolation) : isolation

/** What a deploy does not say of its calls stays as it was: a client that does not know the options takes no rule away. */
function permissionOptions(said: JsonObject, found: Agent | undefined): JsonObject {
  const options = { ...found?.options, ...objectOf(said.options), ...said } as JsonObject
  const { disallowedTools, allow, ask, deny, approvals, approvalTimeoutMs, clientToolTimeoutMs } = options
  const { onBudget, stream, clientTools } = options
  return {
    ...{ disallowedTools, allow, ask, deny, approvals, approvalTimeoutMs, clientToolTimeoutMs },
    ...{ onBudget, stream, clientTools },
  }
}

export const parseTools = ({ metadata, description }: Deployed): DeployedTool[] =>
  objectsOf(description?.tools ?? metadata.tools).map(({ name, description: text }) => ({
    name: String(name),
    description: typeof text === 'string' ? text.slice(0, 4000) : '',
  }))

/** Lists the functions that a bundle wants to be called. This server calls none of them. */
export const parseHooks = ({ metadata, description }: Deployed): string[] => {
  const hooks = description?.hooks ?? metadata.hooks
  return Array.isArray(hooks) ? hooks.map(String) : []
}

/**
 * A runtime is the program that an agent was written for. The operator may have named an engine for it; the built-in agent
 * does for one that has none here.
 */
function chooseEngine(
  runtime: unknown,
  engines: ReadonlyMap<string, Engine>,
  mapped: Readonly<Record<string, string>>,
): string {
  const named = typeof runtime === 'string' ? runtime : ''
  const wanted = Object.hasOwn(mapped, named) ? mapped[named] : named
  return [wanted, 'ai-sdk', 'echo'].find(name => name !== undefined && engines.has(name)) ?? 'echo'
}

/** Named with a URL in the agent's code, or as `.mcp.json` has them. */
function parseMcpServers(listed: unknown, config: JsonObject | undefined): JsonObject | undefined {
  const inline = objectsOf(listed).map(({ name, url }) => [String(name), { type: 'http', url }] as const)
  const configured = Object.entries(objectOf(config?.mcpServers) ?? {}).map(([name, server]) => {
    const type = isObject(server) ? (server.type ?? ('command' in server ? 'stdio' : 'http')) : undefined
    return [name, isObject(server) ? { ...server, type } : server] as const
  })
  if (inline.length > 0 && configured.length > 0) {
    throw new ApiError('invalid_request', 'mcpConfig: the agent names MCP servers too; keep one of the two', {
      field: 'mcpConfig',
    })
  }
  const servers = [...inline, ...configured]
  return servers.length > 0 ? Object.fromEntries(servers) : undefined
}

const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** The commands that install packages of the system, unless they are installed. */
function installPackages(packages: unknown): string[] {
  const names = toList(packages).map(String)
  if (names.length === 0) return []
  const wrong = names.find(name => !/^[a-z0-9][a-z0-9+.:=~-]*$/.test(name))
  if (wrong !== undefined)
    throw new ApiError('invalid_request', `sandboxConfig.apt: no package's name: ${JSON.stringify(excerpt(wrong))}`)
  const list = names.join(' ')
  const install = `apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends ${list}`
  return [`dpkg -s ${list} >/dev/null 2>&1 || { ${install}; }`]
}
