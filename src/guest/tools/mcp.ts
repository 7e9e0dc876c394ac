import { messageOf } from '../../errors.ts'
import { isObject, type JsonObject, parseJson } from '../../read/json.ts'
import { lines } from '../../read/lines.ts'
import type { Keeper } from './keeper.ts'

/** Versions of the protocol that say all that is said here in the same words. */
const versions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

const METHOD_NOT_FOUND = -32_601
const INTERNAL_ERROR = -32_603

/** Serves a keeper's tools by the Model Context Protocol, a message a line. Resolves when the input ends. */
export async function serveMcp(
  keeper: Keeper,
  input: AsyncIterable<Uint8Array>,
  write: (line: string) => void,
): Promise<void> {
  const calls = new Map<unknown, AbortController>()
  const send = (message: object) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

  const answer = async (id: unknown, method: unknown, params: JsonObject): Promise<object> => {
    switch (method) {
      case 'initialize': {
        const { protocolVersion } = params
        return {
          protocolVersion: versions.find(version => version === protocolVersion) ?? versions[0],
          capabilities: { tools: {} },
          serverInfo: { name: 'user-tools', version: '1' },
        }
      }
      case 'ping':
        return {}
      case 'tools/list':
        return { tools: (await keeper.load()).tools }
      case 'tools/call': {
        const abort = new AbortController()
        calls.set(id, abort)
        const result = await keeper.call(String(params.name), params.arguments ?? {}, abort.signal)
        calls.delete(id)
        return result
      }
      default:
        throw new MethodNotFound(`There is no method ${String(method)}.`)
    }
  }

  const take = (line: string) => {
    const message = parseJson(line)
    if (!isObject(message)) return
    const { id, method, params } = message
    if (method === 'notifications/cancelled') calls.get(isObject(params) ? params.requestId : undefined)?.abort()
    if (id === undefined || method === undefined) return
    answer(id, method, isObject(params) ? params : {}).then(
      result => send({ id, result }),
      error => {
        const code = error instanceof MethodNotFound ? METHOD_NOT_FOUND : INTERNAL_ERROR
        send({ id, error: { code, message: messageOf(error) } })
      },
    )
  }

  for await (const line of lines(input)) take(line)
}

class MethodNotFound extends Error {}
