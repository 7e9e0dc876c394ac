import type { Database } from 'bun:sqlite'
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { findKey, findKeyByHash, insertKey, type KeyRow } from '../db/keys.ts'
import { findSetting, saveSetting } from '../db/settings.ts'
import { getTeamName } from '../db/teams.ts'
import { ApiError } from '../errors.ts'
import type { Runtime } from '../runtime.ts'
import { DEFAULT_TEAM, ensureTeamWithEcho } from './teams.ts'

/** Who calls. A caller with a token sees what its team has, within the token's scope. */
export interface Caller {
  teamId: string
  /** The API key that calls, or that made the token; undefined for the configured one. */
  keyId?: string
  token?: TokenScope
}

export interface TokenScope {
  /** Slugs; undefined: every agent of the team. */
  agents?: string[]
  /** What this end user made is all that is seen. */
  userId?: string
}

interface TokenPayload extends TokenScope {
  teamId: string
  /** The key that made it; absent for the configured one. */
  keyId?: string
  /** Seconds since 1970. */
  expires: number
}

const KEY_PREFIX = 'tbx_'
const TOKEN_PREFIX = 'tbt_'

/** Makes a team's key. It is given here once; the database has its hash. */
export function createKey(
  db: Database,
  input: { team: string; name: string; expiresAt?: string },
): { key: string; row: KeyRow } {
  const key = KEY_PREFIX + randomBytes(30).toString('base64url')
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
  if (credential.startsWith(TOKEN_PREFIX)) return readToken(db, credential)
  const hash = hashOf(credential)
  if (config.apiKey && equal(hash, hashOf(config.apiKey))) return { teamId: ensureTeamWithEcho(db, DEFAULT_TEAM).id }
  const key = findKeyByHash(db, hash)
  if (!key) throw new ApiError('unauthorized', 'The API key is not known.')
  if (key.revokedAt) throw new ApiError('unauthorized', 'The API key was revoked.')
  if (key.expiresAt && key.expiresAt <= new Date().toISOString()) {
    throw new ApiError('unauthorized', 'The API key has expired.')
  }
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
  const payload: TokenPayload = { teamId, expires, ...scope, ...(keyId !== undefined && { keyId }) }
  const body = Buffer.from(JSON.stringify(payload)).toString('base64url')
  return { token: `${TOKEN_PREFIX}${body}.${sign(db, body)}`, expiresAt: new Date(expires * 1000).toISOString() }
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
  const team = { id: teamId, name: getTeamName(db, teamId) }
  return { id: keyId ?? null, name, user: { id: keyId ?? null, name }, team }
}

/** Throws forbidden for a browser's token. */
export function assertKey({ token }: Caller, what: string): void {
  if (token) throw new ApiError('forbidden', `A token cannot ${what}: use an API key.`)
}

function readToken(db: Database, token: string): Caller {
  const [body = '', signature = ''] = token.slice(TOKEN_PREFIX.length).split('.')
  if (!equal(signature, sign(db, body))) throw new ApiError('unauthorized', 'The token is not known.')
  const { teamId, keyId, expires, ...scope } = JSON.parse(Buffer.from(body, 'base64url').toString()) as TokenPayload
  if (expires * 1000 <= Date.now()) throw new ApiError('unauthorized', 'The token has expired.')
  if (keyId === undefined) return { teamId, token: scope }
  if (findKey(db, keyId)?.revokedAt) throw new ApiError('unauthorized', 'The API key that made the token was revoked.')
  return { teamId, keyId, token: scope }
}

const SIGNING_KEY = 'token_signing_key'

function sign(db: Database, body: string): string {
  let key = findSetting(db, SIGNING_KEY)
  if (!key) {
    key = randomBytes(32).toString('base64url')
    saveSetting(db, SIGNING_KEY, key)
  }
  return createHmac('sha256', key).update(body).digest('base64url')
}

const hashOf = (secret: string): string => new Bun.CryptoHasher('sha256').update(secret).digest('hex')

function equal(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.byteLength === right.byteLength && timingSafeEqual(left, right)
}
