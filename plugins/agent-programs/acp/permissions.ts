import type { TurnOptions } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf, objectsOf } from '../../../src/read/json.ts'
import { readToolName } from './tools.ts'

const readOnlyKinds: readonly unknown[] = ['read', 'search', 'fetch', 'think']

/**
 * Answers session/request_permission without asking a person. `plan` allows only calls that change nothing; every other mode
 * allows all tools but the disallowed ones. `known`: what earlier updates reported of the call.
 */
export function answerPermission(params: JsonObject, known: JsonObject, options: TurnOptions): object {
  const call = { ...known, ...objectOf(params.toolCall) }
  const { permissionMode, disallowedTools = [], mcpServers = {} } = options
  const name = readToolName(call, Object.keys(mcpServers))
  const isDisallowed = disallowedTools
    .map(rule => (rule.split('(', 1)[0] ?? '').trim())
    .some(rule => rule === name || (rule.startsWith('mcp__') && name.startsWith(`${rule}__`)))
  const isAllowed = !isDisallowed && (permissionMode !== 'plan' || readOnlyKinds.includes(call.kind))
  const kinds = isAllowed ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always']
  const offered = objectsOf(params.options)
  const option = kinds.map(kind => offered.find(each => each.kind === kind)).find(Boolean)
  return { outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' } }
}
