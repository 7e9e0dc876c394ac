import { objectOf } from '../../read/json.ts'
import { type Message, RpcError, rpcCodes } from './messages.ts'

/** Revisions of the protocol in which a client names the revision once, newest first. */
export const sessionRevisions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
/** Revisions in which each request names the revision. */
export const plainRevisions = ['2026-07-28'] as const

/** The revision of a client that names none. */
const UNTOLD = '2025-03-26'
const FIRST_PLAIN: string = plainRevisions[0]

const VERSION = 'io.modelcontextprotocol/protocolVersion'
export const SERVER = 'io.modelcontextprotocol/serverInfo'

/** The form in which a request wants its answer. */
export interface Revision {
  /** Whether each request stands for itself, without a session. */
  isPlain: boolean
  /** Several messages may come in one request. */
  hasBatches: boolean
}

/**
 * Reads the revision of a request. Throws RpcError for one that this server does not know, and for headers that contradict the
 * body.
 */
export function readRevision(headers: Headers, message: Message | undefined): Revision {
  const header = headers.get('mcp-protocol-version')
  const meta = objectOf(objectOf(message?.params)?._meta)
  const told = typeof meta?.[VERSION] === 'string' ? meta[VERSION] : undefined
  const requested = told ?? header ?? UNTOLD
  if (message?.method !== 'initialize' || told !== undefined) assertKnown(requested)
  const isPlain = requested >= FIRST_PLAIN
  if (isPlain && message?.id !== undefined) assertHeaders(headers, message, requested, told)
  return { isPlain, hasBatches: requested === UNTOLD }
}

function assertKnown(requested: string): void {
  const supported: string[] = [...plainRevisions, ...sessionRevisions]
  if (supported.includes(requested)) return
  const said = requested.slice(0, 40)
  throw new RpcError(rpcCodes.unsupportedVersion, `This revision of the protocol is not spoken here: ${said}`, {
    status: 400,
    data: { supported, requested: said },
  })
}

function assertHeaders(headers: Headers, { method, params }: Message, requested: string, told: string | undefined) {
  const wrong = (what: string) => new RpcError(rpcCodes.headerMismatch, what, { status: 400 })
  if (told === undefined)
    throw new RpcError(rpcCodes.invalidParams, `params._meta: ${VERSION} is required`, { status: 400 })
  if (headers.get('mcp-protocol-version') !== requested)
    throw wrong('The header MCP-Protocol-Version must be what the body says.')
  if (headers.get('mcp-method') !== method) throw wrong('The header Mcp-Method must be what the body says.')
  if (method === 'tools/call' && headers.get('mcp-name') !== params?.name)
    throw wrong('The header Mcp-Name must be what the body says.')
}
