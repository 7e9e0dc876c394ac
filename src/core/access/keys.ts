import type { Database } from 'bun:sqlite'
import { randomBytes } from 'node:crypto'
import { insertKey } from '../../db/keys.ts'
import { ApiError } from '../../errors.ts'
import type { ApiKey } from '../../model/key.ts'
import { secretPrefixes } from '../../model/prefixes.ts'
import { readLimits } from '../limits/parse.ts'
import type { Caller } from './caller.ts'
import { ensureTeamWithEcho } from './teams.ts'

/** A new secret in the format of API keys. */
export const newApiKey = (): string => secretPrefixes.apiKey + randomBytes(30).toString('base64url')

/** Makes the text of a new key in the form that E2B's clients accept. */
const newE2bKey = (): string => secretPrefixes.e2bKey + randomBytes(30).toString('hex')

/** The settings of a new key. */
type KeyWish = Pick<ApiKey, 'name' | 'expiresAt' | 'scopes' | 'limits'> & {
  /** Whether it is to have the form that E2B's clients want. */
  isForE2b?: boolean
}

/** Makes a team's key. The secret is only returned here; the database has its hash. */
export function createKey(db: Database, input: { team: string } & KeyWish): { key: string; row: ApiKey } {
  const { team, ...rest } = input
  return createTeamKey(db, { ...rest, teamId: ensureTeamWithEcho(db, team).id })
}

/** Does what `createKey` does, for a team that exists. */
export function createTeamKey(
  db: Database,
  { isForE2b = false, ...input }: { teamId: string } & KeyWish,
): { key: string; row: ApiKey } {
  const key = isForE2b ? newE2bKey() : newApiKey()
  return { key, row: insertKey(db, { ...input, hash: hashKey(key), hint: key.slice(-4) }) }
}

export const hashKey = (secret: string): string => new Bun.CryptoHasher('sha256').update(secret).digest('hex')

/** Throws unauthorized for a key that was revoked or has expired. `name`: the key in the message. */
export function assertUsable({ id, revokedAt, expiresAt }: ApiKey, name: string): void {
  const isExpired = expiresAt !== undefined && expiresAt <= new Date().toISOString()
  if (!revokedAt && !isExpired) return
  const refusal = new ApiError('unauthorized', `${name} ${revokedAt ? 'was revoked' : 'has expired'}.`)
  refusedKeys.set(refusal, id)
  throw refusal
}

const refusedKeys = new WeakMap<ApiError, string>()

/** Finds the id of the key that was refused: for the operator, never for the caller. Undefined for an unknown key. */
export const findRefusedKey = (error: ApiError): string | undefined => refusedKeys.get(error)

/** The caller that a key stands for. */
export const callerOf = ({ id, teamId, scopes, limits }: ApiKey): Caller => ({
  teamId,
  keyId: id,
  ...(scopes && { scopes }),
  ...(limits && { limits: readLimits(limits) }),
})
