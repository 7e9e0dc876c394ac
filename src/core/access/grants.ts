import type { Database } from 'bun:sqlite'
import { createHmac, randomBytes } from 'node:crypto'
import { findKey } from '../../db/keys.ts'
import { findSetting, saveSetting } from '../../db/settings.ts'
import { ApiError } from '../../errors.ts'
import { secretPrefixes } from '../../model/prefixes.ts'
import type { Caller, TokenScope } from './caller.ts'
import { isEqual } from './is-equal.ts'
import { assertUsable, callerOf } from './keys.ts'

/** What a caller without a key may do for a while. */
export interface Grant extends TokenScope {
  teamId: string
  /** The key that made it; absent for the configured one. */
  keyId?: string
  /** Seconds since 1970. */
  expires: number
}

/** Writes a grant as a signed text. One that was written with one prefix cannot be read with another. */
export function writeGrant(db: Database, prefix: string, grant: Grant): string {
  const body = Buffer.from(JSON.stringify(grant)).toString('base64url')
  return `${prefix}${body}.${sign(db, prefix, body)}`
}

/** What a grant's caller has besides the grant: the rights of the key that made it, and an id that stands for its text. */
type Standing = Pick<Caller, 'scopes' | 'limits' | 'tokenId'>

/** Throws unauthorized for a text that was not written here, has expired, or was made by a key that is no longer good. */
export function readGrant<Written extends Grant>(
  db: Database,
  prefix: string,
  text: string,
): { grant: Written; standing: Standing } {
  const what = prefix === secretPrefixes.token ? 'token' : 'link'
  const [body = '', signature = '', ...more] = text.slice(prefix.length).split('.', 3)
  if (!text.startsWith(prefix) || more.length > 0 || !isEqual(signature, sign(db, prefix, body))) {
    throw new ApiError('unauthorized', `The ${what} is not known.`)
  }
  const grant = JSON.parse(Buffer.from(body, 'base64url').toString()) as Written
  if (grant.expires * 1000 <= Date.now()) throw new ApiError('unauthorized', `The ${what} has expired.`)
  const key = grant.keyId === undefined ? undefined : findKey(db, grant.keyId)
  if (key) assertUsable(key, `The API key that made the ${what}`)
  const { scopes, limits } = key ? callerOf(key) : {}
  const tokenId = Bun.hash(signature).toString(36)
  return { grant, standing: { tokenId, ...(scopes && { scopes }), ...(limits && { limits }) } }
}

const SIGNING_KEY = 'token_signing_key'

/** Signs a text that has no dots. A signature made with one prefix is not valid with another. */
export function sign(db: Database, prefix: string, body: string): string {
  let key = findSetting(db, SIGNING_KEY)
  if (!key) {
    key = randomBytes(32).toString('base64url')
    saveSetting(db, SIGNING_KEY, key)
  }
  // Tokens came first and are signed without their prefix. A body has no dot: no other signed text can equal it.
  const signed = prefix === secretPrefixes.token ? body : `${prefix}.${body}`
  return createHmac('sha256', key).update(signed).digest('base64url')
}
