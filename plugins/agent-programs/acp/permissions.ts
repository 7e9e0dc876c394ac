import type { Permissions } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf, objectsOf } from '../../../src/read/json.ts'
import { readToolInput, readToolName } from './tools.ts'

const readOnlyKinds: readonly unknown[] = ['read', 'search', 'fetch', 'think']

/**
 * Answers session/request_permission by the turn's rules, without asking a person. `known`: what earlier updates reported of
 * the call; `servers`: the names of the session's MCP servers.
 */
export function answerPermission(
  params: JsonObject,
  known: JsonObject,
  { permissions, servers }: { permissions: Permissions; servers: readonly string[] },
): object {
  const call = { ...known, ...objectOf(params.toolCall) }
  const name = readToolName(call, servers)
  const isReadOnly = readOnlyKinds.includes(call.kind)
  const { decision } = permissions.decide(name, readToolInput(call), { isReadOnly })
  const kinds = decision !== 'deny' ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always']
  const offered = objectsOf(params.options)
  const option = kinds.map(kind => offered.find(each => each.kind === kind)).find(Boolean)
  return { outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' } }
}
