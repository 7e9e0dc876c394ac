import type { TurnOptions } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf, objectsOf } from '../../../src/read/json.ts'
import { toolNameOf } from './tools.ts'

const readOnlyKinds: readonly unknown[] = ['read', 'search', 'fetch', 'think']

/**
 * Answers session/request_permission: nobody is there to ask. `plan` allows only what changes nothing, every other mode
 * all but the tools that are disallowed. `known`: what was told of the call before.
 */
export function answerPermission(params: JsonObject, known: JsonObject, options: TurnOptions): object {
  const call = { ...known, ...objectOf(params.toolCall) }
  const { permissionMode, disallowedTools = [], mcpServers = {} } = options
  const name = toolNameOf(call, Object.keys(mcpServers))
  const isDisallowed = disallowedTools
    .map(rule => (rule.split('(', 1)[0] ?? '').trim())
    .some(rule => rule === name || (rule.startsWith('mcp__') && name.startsWith(`${rule}__`)))
  const isAllowed = !isDisallowed && (permissionMode !== 'plan' || readOnlyKinds.includes(call.kind))
  const kinds = isAllowed ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always']
  const offered = objectsOf(params.options)
  const option = kinds.map(kind => offered.find(each => each.kind === kind)).find(Boolean)
  return { outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' } }
}
