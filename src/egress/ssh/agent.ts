import type { Duplex } from 'node:stream'
import { createByteSource, write } from '../../http1/byte-source.ts'
import type { Target } from '../policy.ts'
import { parseRule } from '../rules.ts'
import { type BoundSecret, keysFor, type SecretUse, SSH_PORT } from '../secrets/binding.ts'
import type { HostIdentity } from './exchange.ts'
import { byteField, numberField, readFields, stringField } from './fields.ts'
import { type Login, readLogin } from './login.ts'
import { readPrivateKey, type SshKey } from './private-key.ts'
import { isSignedBy } from './public-key.ts'

/** An open connection to an SSH server, as this server has observed it. */
export interface SshSession {
  target: Target
  identity: HostIdentity
  /** How many logins were signed for this connection. */
  logins: number
}

export interface AgentParts {
  /** The keys that the sandbox may use now. */
  keys(): readonly BoundSecret[]
  sessions(): Iterable<SshSession>
  used(use: SecretUse): void
  /** Reports why a login was not signed. */
  refused(target: Pick<Target, 'name' | 'port'>, reason: string): void
}

/** Numbers of messages (draft-ietf-sshm-ssh-agent). */
const FAILURE = 5
const SUCCESS = 6
const REQUEST_IDENTITIES = 11
const IDENTITIES_ANSWER = 12
const SIGN_REQUEST = 13
const SIGN_RESPONSE = 14
const EXTENSION = 27

const MAX_MESSAGE_BYTES = 64 * 1024
/** A client tries each of its algorithms at most once. */
const MAX_LOGINS = 4

/**
 * Answers an SSH client inside until it has ended: lists public keys, and signs logins at servers to which a key is bound. The
 * session in a login must be one that such a server has signed itself, on a connection that is open now and was dialled here:
 * nothing that a program says is trusted. Never throws. A malformed message ends the connection.
 */
export async function serveAgent(
  socket: Duplex,
  parts: AgentParts,
  inTurn: <T>(work: () => Promise<T>) => Promise<T>,
): Promise<void> {
  socket.on('error', () => {})
  /** Whether another host would get the signature: OpenSSH says beforehand that its agent is forwarded to one. */
  let isLent = false
  try {
    for await (const message of readMessages(socket)) {
      isLent ||= lendsAgent(message)
      const answer = await inTurn(async () => answerTo(message, parts, isLent))
      await write(socket, stringField(answer))
    }
    socket.end()
  } catch {
    socket.destroy()
  }
}

/** Throws for a message that is too long, or ends too early. */
async function* readMessages(socket: Duplex): AsyncGenerator<Buffer, void> {
  const source = createByteSource(socket)
  const chunks: Buffer[] = []
  let bytes = 0
  const take = async (length: number): Promise<Buffer | undefined> => {
    while (bytes < length) {
      const chunk = await source.read()
      if (!chunk) return undefined
      chunks.push(chunk)
      bytes += chunk.length
    }
    const all = Buffer.concat(chunks.splice(0))
    bytes = all.length - length
    if (bytes > 0) chunks.push(all.subarray(length))
    return all.subarray(0, length)
  }
  for (let head = await take(4); head; head = await take(4)) {
    const length = head.readUInt32BE(0)
    if (length === 0 || length > MAX_MESSAGE_BYTES) throw new RangeError('a message that is too long')
    const message = await take(length)
    if (!message) return
    yield message
  }
}

/** Throws for a malformed message. */
function answerTo(message: Buffer, parts: AgentParts, isLent: boolean): Buffer {
  const fields = readFields(message)
  const kind = fields.byte()
  if (kind === REQUEST_IDENTITIES) {
    fields.end()
    return listKeys(parts)
  }
  if (kind === SIGN_REQUEST) {
    const [publicKey, data, flags] = [fields.string(), fields.string(), fields.number()]
    fields.end()
    return sign(publicKey, data, flags, parts, isLent)
  }
  // The client binds its connection to a session; this server has observed the session itself.
  return byteField(kind === EXTENSION && fields.text() === SESSION_BIND ? SUCCESS : FAILURE)
}

const SESSION_BIND = 'session-bind@openssh.com'

function lendsAgent(message: Buffer): boolean {
  const fields = readFields(message)
  if (fields.byte() !== EXTENSION || fields.text() !== SESSION_BIND) return false
  for (const _ of ['host key', 'session', 'signature']) fields.string()
  return fields.boolean()
}

/** Undefined when the secret is gone, or is not a key any more. */
function findKey(secret: BoundSecret): SshKey | undefined {
  try {
    return readPrivateKey(secret.value())
  } catch {
    return undefined
  }
}

function listKeys({ keys }: AgentParts): Buffer {
  const listed = new Map<string, Buffer>()
  for (const secret of keys()) {
    const key = findKey(secret)
    const name = key?.publicKey.toString('base64')
    if (key && name !== undefined && !listed.has(name))
      listed.set(name, Buffer.concat([stringField(key.publicKey), stringField(secret.name)]))
  }
  return Buffer.concat([byteField(IDENTITIES_ANSWER), numberField(listed.size), ...listed.values()])
}

/** The flags with which a client asks for an RSA algorithm, and the algorithm that its login then names. */
const rsaFlags: Readonly<Record<number, string>> = { 2: 'rsa-sha2-256', 4: 'rsa-sha2-512' }

function sign(publicKey: Buffer, data: Buffer, flags: number, parts: AgentParts, isLent: boolean): Buffer {
  const failure = byteField(FAILURE)
  const held = parts.keys().flatMap(secret => {
    const key = findKey(secret)
    return key?.publicKey.equals(publicKey) ? [{ secret, key }] : []
  })
  const [first] = held
  if (!first) return failure
  const refuse = (reason: string, target?: Pick<Target, 'name' | 'port'>) => {
    parts.refused(target ?? hostOf(first.secret), reason)
    return failure
  }
  const login = readLogin(data)
  const type = readFields(publicKey).text()
  const algorithm = type === 'ssh-rsa' ? rsaFlags[flags] : type
  if (!login?.publicKey.equals(publicKey) || algorithm === undefined || login.algorithm !== algorithm)
    return refuse(`the key ${first.secret.name} signs logins by SSH alone, and nothing by SHA-1`)
  if (isLent) return refuse(`the key ${first.secret.name} is not lent to another host`)
  const session = findSession(parts.sessions(), login)
  if (!session)
    return refuse(
      `the key ${first.secret.name} signs logins on open connections to its hosts alone, none of which is this one`,
    )
  const { target, identity } = session
  const found = held.find(({ secret }) => isFor(secret, session, login))
  if (!found) return refuse(`no key is for ${login.user.slice(0, 100)} there, or the host has another key`, target)
  if (session.logins >= MAX_LOGINS) return refuse('too many logins on one connection', target)
  if (login.hostKey && !login.hostKey.equals(identity.hostKey)) return refuse('the login names another host', target)
  session.logins++
  const signature = found.key.sign(algorithm, data)
  const { name: host, port } = target
  parts.used({ name: found.secret.name, host, port, method: 'SSH', path: login.user })
  return Buffer.concat([byteField(SIGN_RESPONSE), stringField(signature)])
}

/** The first host of a key, for when the intended one is not known. */
function hostOf({ hosts: [first = ''] }: BoundSecret): Pick<Target, 'name' | 'port'> {
  const { domain, ports } = parseRule(first)
  return { name: domain?.name ?? first, port: ports?.from ?? SSH_PORT }
}

/** The host has signed the session's id in the key exchange: nobody else can make another host sign it. */
function findSession(sessions: Iterable<SshSession>, { sessionId }: Login): SshSession | undefined {
  for (const session of sessions) {
    const { hostKey, signature } = session.identity
    if (isSignedBy(hostKey, signature, sessionId)) return session
  }
  return undefined
}

function isFor(secret: BoundSecret, { target, identity }: SshSession, { user }: Login): boolean {
  const { as } = secret
  if (!('ssh' in as) || as.ssh.user !== user || keysFor([secret], target.name, target.port).length === 0) return false
  const hostKey = identity.hostKey.toString('base64')
  return as.ssh.hostKeys === undefined || as.ssh.hostKeys.some(each => each.trim().split(/\s+/)[1] === hostKey)
}
