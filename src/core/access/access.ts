import type { Database } from 'bun:sqlite'
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { findKey, findKeyByHash, insertKey } from '../../db/keys.ts'
import { findSetting, saveSetting } from '../../db/settings.ts'
import { getTeamName } from '../../db/teams.ts'
import { ApiError } from '../../errors.ts'
import type { ApiKey } from '../../model/key.ts'
import { secretPrefixes } from '../../model/prefixes.ts'
import type { Runtime } from '../runtime.ts'
import { DEFAULT_TEAM, ensureTeamWithEcho } from './teams.ts'

/** Who calls. A caller with a token sees what its team has, within the token's scope. */
export interface Caller {
  teamId: string
  /** The API key that calls, or that made the token; undefined for the configured one. */
  keyId?: string
  token?: TokenScope
  /** When the token is over, in seconds since 1970. */
  expires?: number
}

export interface TokenScope {
  /** Slugs; undefined: every agent of the team. */
  agents?: string[]
  /** What this end user made is all that is seen. */
  userId?: string
}

/** What someone without a key may do for a while. */
export interface Grant extends TokenScope {
  teamId: string
  /** The key that made it; absent for the configured one. */
  keyId?: string
  /** Seconds since 1970. */
  expires: number
}

const TOKEN_PREFIX = secretPrefixes.token

/** A new secret in the format of API keys. */
export const newApiKey = (): string => secretPrefixes.apiKey + randomBytes(30).toString('base64url')

/** Makes a team's key. It is given here once; the database has its hash. */
export function createKey(
  db: Database,
  input: { team: string; name: string; expiresAt?: string },
): { key: string; row: ApiKey } {
  const key = newApiKey()
  const { team, ...rest } = input
  const row = insertKey(db, {
    ...rest,
    teamId: ensureTeamWithEcho(db, team).id,
    hash: hashOf(key),
    hint: key.slice(-4),
  })
  return { key, row }
}

/** Says who sends this `Authorization` header. Throws unauthorized. */
export function authenticate({ db, config }: Runtime, header: string | null): Caller {
  const credential = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]
  if (!credential) throw new ApiError('unauthorized', 'Send the header Authorization: Bearer <API_KEY>.')
  if (credential.startsWith(TOKEN_PREFIX)) return callerWith(readGrant(db, TOKEN_PREFIX, credential))
  const hash = hashOf(credential)
  if (config.apiKey && equal(hash, hashOf(config.apiKey))) return { teamId: ensureTeamWithEcho(db, DEFAULT_TEAM).id }
  const key = findKeyByHash(db, hash)
  if (!key) throw new ApiError('unauthorized', 'The API key is not known.')
  if (key.revokedAt) throw refusalOf(key, 'The API key was revoked.')
  if (isOver(key)) throw refusalOf(key, 'The API key has expired.')
  return { teamId: key.teamId, keyId: key.id }
}

/** A signed token of the caller's team, for a browser. Throws forbidden for a caller that has a token itself. */
export function createToken(
  { db }: Runtime,
  caller: Caller,
  { lifetimeMs, ...scope }: TokenScope & { lifetimeMs: number },
): { token: string; expiresAt: string } {
  assertKey(caller, 'make tokens')
  const expires = Math.floor((Date.now() + lifetimeMs) / 1000)
  const { teamId, keyId } = caller
  const grant: Grant = { teamId, expires, ...scope, ...(keyId !== undefined && { keyId }) }
  return { token: writeGrant(db, TOKEN_PREFIX, grant), expiresAt: new Date(expires * 1000).toISOString() }
}

/** Throws forbidden when the caller's token is for other agents. */
export function assertAgent({ token }: Caller, slug: string): void {
  if (token?.agents && !token.agents.includes(slug)) {
    throw new ApiError('forbidden', 'The token is not for this agent.')
  }
}

/** Whose key the caller has, for a client that wants to show it. Throws forbidden for a token. */
export function whoIs({ db }: Runtime, caller: Caller) {
  assertKey(caller, 'ask whose it is')
  const { teamId, keyId } = caller
  const name = (keyId !== undefined && findKey(db, keyId)?.name) || 'api-key'
  const teamName = getTeamName(db, teamId)
  // Tools that deploy print these names of a person and a team: a key stands for its holder here.
  const user = { id: keyId ?? null, name, displayName: name, username: name, email: null }
  return { id: keyId ?? null, name, user, team: { id: teamId, name: teamName, slug: teamName } }
}

/** Throws forbidden for a browser's token. */
export function assertKey({ token }: Caller, what: string): void {
  if (token) throw new ApiError('forbidden', `A token cannot ${what}: use an API key.`)
}

/** A grant as a text that nobody else can write. Grants of one prefix are none of another. */
export function writeGrant(db: Database, prefix: string, grant: Grant): string {
  const body = Buffer.from(JSON.stringify(grant)).toString('base64url')
  return `${prefix}${body}.${sign(db, prefix, body)}`
}

/** Throws unauthorized for a text that was not written here, is over, or was made by a key that is revoked or over. */
export function readGrant<Written extends Grant>(db: Database, prefix: string, text: string): Written {
  const what = prefix === TOKEN_PREFIX ? 'token' : 'link'
  const [body = '', signature = '', ...more] = text.slice(prefix.length).split('.', 3)
  if (!text.startsWith(prefix) || more.length > 0 || !equal(signature, sign(db, prefix, body))) {
    throw new ApiError('unauthorized', `The ${what} is not known.`)
  }
  const grant = JSON.parse(Buffer.from(body, 'base64url').toString()) as Written
  if (grant.expires * 1000 <= Date.now()) throw new ApiError('unauthorized', `The ${what} has expired.`)
  const key = grant.keyId === undefined ? undefined : findKey(db, grant.keyId)
  if (key?.revokedAt) throw refusalOf(key, `The API key that made the ${what} was revoked.`)
  if (key && isOver(key)) throw refusalOf(key, `The API key that made the ${what} has expired.`)
  return grant
}

const refusedKeys = new WeakMap<ApiError, string>()

/** The id of the key that was refused, for the operator: the caller is not told. Undefined when it is not known. */
export const refusedKeyOf = (error: ApiError): string | undefined => refusedKeys.get(error)

function refusalOf({ id }: ApiKey, message: string): ApiError {
  const refusal = new ApiError('unauthorized', message)
  refusedKeys.set(refusal, id)
  return refusal
}

const isOver = ({ expiresAt }: ApiKey): boolean => expiresAt !== undefined && expiresAt <= new Date().toISOString()

/** Whom a token stands for. */
function callerWith({ teamId, keyId, expires, ...scope }: Grant): Caller {
  return { teamId, token: scope, expires, ...(keyId !== undefined && { keyId }) }
}

const SIGNING_KEY = 'token_signing_key'

function sign(db: Database, prefix: string, body: string): string {
  let key = findSetting(db, SIGNING_KEY)
  if (!key) {
    key = randomBytes(32).toString('base64url')
    saveSetting(db, SIGNING_KEY, key)
  }
  // Tokens were the first, and have no prefix in what is signed. No body has a dot: what is signed of others is none.
  const signed = prefix === TOKEN_PREFIX ? body : `${prefix}.${body}`
  return createHmac('sha256', key).update(signed).digest('base64url')
}

const hashOf = (secret: string): string => new Bun.CryptoHasher('sha256').update(secret).digest('hex')

function equal(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.byteLength === right.byteLength && timingSafeEqual(left, right)
}
