import { readFields } from './fields.ts'

/** The data that a client signs to log in with a key (RFC 4252, section 7). */
export interface Login {
  sessionId: Buffer
  user: string
  /** The algorithm of the signature. */
  algorithm: string
  publicKey: Buffer
  /** The host key that the client says it talks to, when its method includes one. */
  hostKey?: Buffer
}

const USERAUTH_REQUEST = 50
const PLAIN = 'publickey'
const HOST_BOUND = 'publickey-hostbound-v00@openssh.com'
const MAX_SESSION_ID_BYTES = 64

/** Reads a login. Undefined for any other data that a key could sign. */
export function readLogin(data: Buffer): Login | undefined {
  try {
    const fields = readFields(data)
    const sessionId = fields.string()
    if (sessionId.length === 0 || sessionId.length > MAX_SESSION_ID_BYTES) return undefined
    if (fields.byte() !== USERAUTH_REQUEST) return undefined
    const user = fields.string().toString('utf8')
    const service = fields.text()
    const method = fields.text()
    const hasSignature = fields.boolean()
    if (service !== 'ssh-connection' || !hasSignature || (method !== PLAIN && method !== HOST_BOUND)) return undefined
    const login = { sessionId, user, algorithm: fields.text(), publicKey: fields.string() }
    const hostKey = method === HOST_BOUND ? fields.string() : undefined
    fields.end()
    return { ...login, ...(hostKey && { hostKey }) }
  } catch {
    return undefined
  }
}
