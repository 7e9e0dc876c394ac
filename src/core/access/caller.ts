import { findKey } from '../../db/keys.ts'
import { getTeamName } from '../../db/teams.ts'
import { ApiError } from '../../errors.ts'
import type { Approval } from '../../model/approval.ts'
import type { OwnLimits } from '../../model/limit.ts'
import type { Cause } from '../../model/observation.ts'
import type { Scope } from '../../model/scope.ts'
import type { Runtime } from '../runtime.ts'

/** The sender of a request. A caller with a token sees what its team has, within the token's scope. */
export interface Caller {
  teamId: string
  /** The API key that calls, or that made the token; undefined for the configured one. */
  keyId?: string
  token?: TokenScope
  /** Identifies a token or link in logs and limits. It is not a part of the token's text. */
  tokenId?: string
  /** What the key may do that calls, made the token or link, or signed the browser in. Absent when it may do everything. */
  scopes?: readonly Scope[]
  /** Set when a signed-in browser calls. */
  sessionId?: string
  /** Set when a schedule calls. */
  scheduleId?: string
  /** The key's own limits, in place of the server's. */
  limits?: OwnLimits
  /** When the token expires, in seconds since 1970. */
  expires?: number
  /** The request that this caller sent. Absent in a command that works beside a server. */
  request?: Pick<Cause, 'requestId' | 'address'>
}

export interface TokenScope {
  /** Slugs; undefined: every agent of the team. */
  agents?: string[]
  /** The caller sees only what this end user made. */
  userId?: string
  /** The caller may decide on what agents ask for. */
  approve?: true
}

/** The caller as the cause of what it makes happen. */
export const causeOf = ({ keyId, sessionId, scheduleId, token, request }: Caller): Cause => ({
  ...request,
  ...(keyId !== undefined && { keyId }),
  ...(sessionId !== undefined && { sessionId }),
  ...(scheduleId !== undefined && { scheduleId }),
  ...(token?.userId !== undefined && { userId: token.userId }),
})

/** Throws forbidden when the caller's token is for other agents. */
export function assertAgent({ token }: Caller, slug: string): void {
  if (token?.agents && !token.agents.includes(slug)) {
    throw new ApiError('forbidden', 'The token is not for this agent.')
  }
}

/** Throws forbidden for a browser's token. */
export function assertKey({ token }: Caller, what: string): void {
  if (token) throw new ApiError('forbidden', `A token cannot ${what}: use an API key.`)
}

/** Describes the key and team of a caller, for a client that wants to show them. Throws forbidden for a token. */
export function describeCaller({ db }: Runtime, caller: Caller) {
  assertKey(caller, 'ask whose it is')
  const { teamId, keyId } = caller
  const name = (keyId !== undefined && findKey(db, keyId)?.name) || 'api-key'
  const teamName = getTeamName(db, teamId)
  // Tools that deploy print these names of a person and a team: a key stands for its holder here.
  const user = { id: keyId ?? null, name, displayName: name, username: name, email: null }
  return {
    id: keyId ?? null,
    name,
    scopes: caller.scopes ?? null,
    user,
    team: { id: teamId, name: teamName, slug: teamName },
  }
}

/** Throws forbidden for a browser's token that was not made for this, and for every token when it is about money. */
export function assertMayApprove({ token }: Caller, { kind }: Pick<Approval, 'kind'>): void {
  if (token && token.approve !== true) {
    throw new ApiError('forbidden', 'The token may not approve: make it with "approve": true, or use an API key.')
  }
  if (token && kind === 'budget') throw new ApiError('forbidden', 'A token cannot approve money: use an API key.')
}
