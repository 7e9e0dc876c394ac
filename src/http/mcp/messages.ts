import { isObject, type JsonObject, objectOf } from '../../read/json.ts'

/** JSON-RPC 2.0, https://www.jsonrpc.org/specification, as MCP has it. */

export const rpcCodes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const

export interface Message {
  method: string
  /** Undefined for a notification, which gets no answer. */
  id: string | number | undefined
  params: JsonObject | undefined
}

/** An error of the protocol: this server cannot read the request. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  /** The HTTP status of the answer. */
  readonly status: number
  readonly data: object | undefined

  constructor(
    readonly code: number,
    message: string,
    { status = 200, data }: { status?: number; data?: object } = {},
  ) {
    super(message)
    this.status = status
    this.data = data
  }
}

/** The longest id of a request: the answer repeats it. */
const MAX_ID = 200

/** Reads one message. Undefined for a client's answer, because this server asks clients nothing. Throws RpcError. */
export function readMessage(value: unknown): Message | undefined {
  const { jsonrpc, method, id, params } = objectOf(value) ?? {}
  const wrong = (what: string) => new RpcError(rpcCodes.invalidRequest, what, { status: 400 })
  if (jsonrpc !== '2.0') throw wrong('This is no message of JSON-RPC 2.0.')
  if (method === undefined && isObject(value) && ('result' in value || 'error' in value)) return undefined
  if (typeof method !== 'string') throw wrong('method: required')
  if (id !== undefined && !isId(id)) throw wrong('id: must be a text or a whole number')
  if (params !== undefined && !isObject(params)) throw wrong('params: must be an object')
  return { method, id, params }
}

export const isId = (id: unknown): id is string | number =>
  (typeof id === 'string' && id.length <= MAX_ID) || (typeof id === 'number' && Number.isSafeInteger(id))

export const resultMessage = (id: string | number, result: object) => ({ jsonrpc: '2.0', id, result })

export const errorMessage = (id: string | number | undefined, { code, message, data }: RpcError) => ({
  jsonrpc: '2.0',
  id: id ?? null,
  error: { code, message, ...(data && { data }) },
})
