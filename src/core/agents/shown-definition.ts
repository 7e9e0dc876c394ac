import { ApiError } from '../../errors.ts'
import type { AgentDefinition } from '../../model/agent.ts'
import type { McpServer } from '../../plugin-api/index.ts'
import { isObject, type JsonObject, objectOf } from '../../read/json.ts'
import { definitionOf } from './versions.ts'

/**
 * An agent as its file would have it, with null in the place of each secret: values of variables and headers, and URLs
 * with a name, a password or a query.
 */
export function shownDefinition(slug: string, agent: AgentDefinition): JsonObject {
  const { sandbox, options, ...rest } = definitionOf(agent)
  const { mcpServers, acp, ...others } = options
  return {
    slug,
    ...rest,
    options: {
      ...others,
      ...(acp && { acp: { ...acp, ...(acp.env && { env: hidden(acp.env) }) } }),
      ...(mcpServers && {
        mcpServers: Object.fromEntries(
          Object.entries(mcpServers).map(([name, server]) => [name, shownServer(server)] as const),
        ),
      }),
    },
    sandbox: { ...sandbox, envs: hidden(sandbox.envs) },
  }
}

const hidden = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.keys(values).map(name => [name, null] as const))

function shownServer(server: McpServer): JsonObject {
  if (server.type === 'stdio') return { ...server, ...(server.env && { env: hidden(server.env) }) }
  const { url, headers } = server
  return { ...server, url: isSecretUrl(url) ? null : url, ...(headers && { headers: hidden(headers) }) }
}

function isSecretUrl(text: string): boolean {
  const url = URL.parse(text)
  return !url || Boolean(url.username || url.password || url.search)
}

/**
 * Reverses `shownDefinition`: each null becomes what the agent has there now. Throws invalid_request where the agent has nothing.
 */
export function withKeptSecrets(shown: JsonObject, { sandbox, options }: AgentDefinition): JsonObject {
  const given = objectOf(shown.options) ?? {}
  const acp = objectOf(given.acp)
  const servers = objectOf(given.mcpServers)
  const place = objectOf(shown.sandbox)
  return {
    ...shown,
    ...(place && {
      sandbox: {
        ...place,
        ...(place.envs !== undefined && { envs: filled('sandbox.envs', place.envs, sandbox.envs) }),
      },
    }),
    ...(isObject(shown.options) && {
      options: {
        ...given,
        ...(acp?.env !== undefined && { acp: { ...acp, env: filled('options.acp.env', acp.env, options.acp?.env) } }),
        ...(servers && { mcpServers: keptServers(servers, options.mcpServers ?? {}) }),
      },
    }),
  }
}

const keptServers = (servers: JsonObject, current: Readonly<Record<string, McpServer>>): JsonObject =>
  Object.fromEntries(
    Object.entries(servers).map(([name, server]) => {
      const now = Object.hasOwn(current, name) ? current[name] : undefined
      return [name, isObject(server) ? keptServer(`options.mcpServers.${name}`, server, now) : server] as const
    }),
  )

/** Headers are kept only with the URL that they were given for, because another server would learn them. */
function keptServer(field: string, server: JsonObject, now: McpServer | undefined): JsonObject {
  const remote = now && now.type !== 'stdio' ? now : undefined
  const url = server.url === null ? remote?.url : server.url
  if (server.url === null && url === undefined) throw missing(`${field}.url`)
  const headers = remote?.url === url ? remote?.headers : undefined
  const env = now?.type === 'stdio' ? now.env : undefined
  return {
    ...server,
    ...(url !== undefined && { url }),
    ...(server.headers !== undefined && { headers: filled(`${field}.headers`, server.headers, headers) }),
    ...(server.env !== undefined && { env: filled(`${field}.env`, server.env, env) }),
  }
}

function filled(field: string, values: unknown, current: Readonly<Record<string, string>> = {}): unknown {
  if (!isObject(values)) return values
  const all = Object.entries(values).map(([name, value]) => {
    if (value !== null) return [name, value] as const
    if (!Object.hasOwn(current, name)) throw missing(`${field}.${name}`)
    return [name, current[name]] as const
  })
  return Object.fromEntries(all)
}

const missing = (field: string) =>
  new ApiError('invalid_request', `${field}: null keeps what is there, and nothing is: give a value`, { field })
