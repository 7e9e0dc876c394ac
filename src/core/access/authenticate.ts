import type { Database } from 'bun:sqlite'
import { findKeyByHash } from '../../db/keys.ts'
import { ApiError } from '../../errors.ts'
import type { Runtime } from '../runtime.ts'
import type { Caller } from './caller.ts'
import { isEqual } from './is-equal.ts'
import { assertUsable, callerOf, hashKey } from './keys.ts'
import { DEFAULT_TEAM, ensureTeamWithEcho } from './teams.ts'
import { isToken, readToken } from './tokens.ts'

/** Returns the caller that sends this `Authorization` header. Throws unauthorized. */
export function authenticate({ db, config }: Runtime, header: string | null): Caller {
  const credential = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]
  if (!credential) throw new ApiError('unauthorized', 'Send the header Authorization: Bearer <API_KEY>.')
  if (isToken(credential)) return readToken(db, credential)
  const hash = hashKey(credential)
  if (config.apiKey && isEqual(hash, hashKey(config.apiKey))) return { teamId: defaultTeamOf(db) }
  const key = findKeyByHash(db, hash)
  if (!key) throw new ApiError('unauthorized', 'The API key is not known.')
  assertUsable(key, 'The API key')
  return callerOf(key)
}

/** Its id stays: teams are not removed. */
const defaultTeams = new WeakMap<Database, string>()

function defaultTeamOf(db: Database): string {
  const known = defaultTeams.get(db) ?? ensureTeamWithEcho(db, DEFAULT_TEAM).id
  defaultTeams.set(db, known)
  return known
}
