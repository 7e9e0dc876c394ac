import { findKey, listTeamKeys, revokeKey } from '../../db/keys.ts'
import { inTransaction } from '../../db/open.ts'
import { ApiError } from '../../errors.ts'
import type { ApiKey } from '../../model/key.ts'
import type { LimitTexts } from '../../model/limit.ts'
import type { Scope } from '../../model/scope.ts'
import { narrowLimits } from '../limits/narrow.ts'
import { formatLimits } from '../limits/parse.ts'
import type { Runtime } from '../runtime.ts'
import { assertKey, type Caller } from './caller.ts'
import { keepChange, keepEnd } from './keep-change.ts'
import { createTeamKey } from './keys.ts'

/** The keys of the caller's team, newest first. Throws forbidden for a token. */
export function listOwnKeys({ db }: Runtime, caller: Caller): ApiKey[] {
  assertKey(caller, 'see keys')
  return listTeamKeys(db, caller.teamId)
}

/**
 * Makes a key of the caller's team, which is only returned here. A key that expires makes none that outlives it, and one with
 * limits makes none with higher ones. Throws forbidden for a token, and invalid_request for limits above the server's.
 */
export function createOwnKey(
  runtime: Runtime,
  caller: Caller,
  { name, lifetimeMs, scopes, limits = {} }: KeyRequest,
): { key: string; row: ApiKey } {
  assertKey(caller, 'make keys')
  const { db, config } = runtime
  const { teamId, keyId } = caller
  const asked = lifetimeMs === undefined ? undefined : new Date(Date.now() + lifetimeMs).toISOString()
  const latest = keyId === undefined ? undefined : findKey(db, keyId)?.expiresAt
  const expiresAt = earlier(asked, latest)
  const own = narrowLimits(limits, caller.limits, config.callerLimits)
  const wish = {
    ...{ teamId, name },
    ...(expiresAt !== undefined && { expiresAt }),
    ...(scopes && { scopes }),
    ...(Object.keys(own).length > 0 && { limits: formatLimits(own) }),
  }
  return inTransaction(db, () => {
    const made = createTeamKey(db, wish)
    const target = { keyId: made.row.id }
    keepChange(runtime, caller, { action: 'key.created', target, detail: { expiresAt, scopes } })
    return made
  })
}

interface KeyRequest {
  name: string
  lifetimeMs?: number
  scopes?: readonly Scope[]
  /** As `{"requests":"5/s"}`. */
  limits?: LimitTexts
}

/** Throws forbidden for a token, and not_found when the team has no such key that is valid. */
export function revokeOwnKey(runtime: Runtime, caller: Caller, id: string): void {
  assertKey(caller, 'revoke keys')
  keepEnd(runtime, caller, () => {
    const isRevoked = revokeKey(runtime.db, id, caller.teamId)
    if (!isRevoked) throw new ApiError('not_found', 'There is no such key that is valid.')
    return { action: 'key.revoked', target: { keyId: id } }
  })
}

const earlier = (a: string | undefined, b: string | undefined): string | undefined =>
  a === undefined || (b !== undefined && b < a) ? b : a
