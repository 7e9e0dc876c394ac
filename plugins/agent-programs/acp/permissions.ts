import { type JsonObject, objectsOf } from '../../../src/read/json.ts'
import type { ProgramCall } from '../program-call.ts'
import { readToolInput, readToolName } from './tools.ts'

const readOnlyKinds: readonly unknown[] = ['read', 'search', 'fetch', 'think']

/** A call as rules are asked about it. `servers`: the names of the session's MCP servers. */
export const toProgramCall = (call: JsonObject, servers: readonly string[]): ProgramCall => ({
  callId: String(call.toolCallId),
  name: readToolName(call, servers),
  input: readToolInput(call),
  isReadOnly: readOnlyKinds.includes(call.kind),
})

/**
 * The result of session/request_permission, by the options that the program offers. What holds for this call alone comes
 * first. `always`: the program may also be told to ask no more about such calls.
 */
export function toOutcome(offered: unknown, isAllowed: boolean, { always }: { always: boolean }): object {
  const kinds = isAllowed ? ['allow_once', ...(always ? ['allow_always'] : [])] : ['reject_once', 'reject_always']
  const options = objectsOf(offered)
  const option = kinds.map(kind => options.find(each => each.kind === kind)).find(Boolean)
  return { outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' } }
}
