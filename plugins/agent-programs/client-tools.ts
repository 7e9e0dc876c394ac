import type { ClientTool } from '../../src/plugin-api/index.ts'
import { type JsonObject, objectOf } from '../../src/read/json.ts'
import type { ProgramCall, Verdict } from './program-call.ts'

/** The MCP server by which programs get the client's tools. */
export const OWN_SERVER = 'client-tools'

/** Versions of the protocol that say all that is said here in the same words. */
const versions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
const METHOD_NOT_FOUND = -32_601

type Call = (call: ProgramCall, reply: (verdict: Verdict) => void) => void

/**
 * Answers one message of the Model Context Protocol. `reply` is called once for a request, and not for a notification. A
 * call waits for the client as long as that takes.
 */
export function serveClientTools(
  tools: Readonly<Record<string, ClientTool>>,
  { id, method, params }: JsonObject,
  callClient: Call,
  reply: (message: object) => void,
): void {
  if (id === undefined || typeof method !== 'string') return
  const given = objectOf(params) ?? {}
  const answer = (result: object) => reply({ jsonrpc: '2.0', id, result })
  const name = String(given.name)
  if (method === 'tools/call' && Object.hasOwn(tools, name)) {
    const callId = objectOf(given._meta)?.['claudecode/toolUseId']
    const call = { callId: typeof callId === 'string' ? callId : '', name, input: given.arguments ?? {} }
    callClient(call, verdict => answer(toResult(verdict)))
    return
  }
  const result = answerAtOnce(tools, method, given)
  if (result) answer(result)
  else reply({ jsonrpc: '2.0', id, error: { code: METHOD_NOT_FOUND, message: `There is no ${method}.` } })
}

function answerAtOnce(
  tools: Readonly<Record<string, ClientTool>>,
  method: string,
  { protocolVersion, name }: JsonObject,
): object | undefined {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: versions.find(version => version === protocolVersion) ?? versions[0],
        capabilities: { tools: {} },
        serverInfo: { name: OWN_SERVER, version: '1' },
      }
    case 'ping':
      return {}
    case 'tools/list':
      return { tools: Object.entries(tools).map(([each, tool]) => ({ name: each, ...tool })) }
    case 'tools/call':
      return toResult({ type: 'error', error: `There is no tool ${String(name)}.` })
    default:
      return undefined
  }
}

function toResult(verdict: Verdict): object {
  const text = (words: string, isError = false) => ({ content: [{ type: 'text', text: words }], isError })
  if (verdict.type === 'output') {
    return text(typeof verdict.output === 'string' ? verdict.output : (JSON.stringify(verdict.output) ?? 'null'))
  }
  if (verdict.type === 'allowed') return text('')
  return text(verdict.type === 'denied' ? verdict.message : verdict.error, true)
}
