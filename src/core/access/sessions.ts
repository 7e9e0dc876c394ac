import type { Database } from 'bun:sqlite'
import { randomBytes } from 'node:crypto'
import { findKey } from '../../db/keys.ts'
import { inTransaction } from '../../db/open.ts'
import {
  deleteSession,
  findSessionByHash,
  insertSession,
  insertSignInLink,
  listSessions,
  takeSignInLink,
} from '../../db/sessions.ts'
import { ApiError } from '../../errors.ts'
import { secretPrefixes } from '../../model/prefixes.ts'
import type { Session } from '../../model/session.ts'
import type { Runtime } from '../runtime.ts'
import { authenticate } from './authenticate.ts'
import { assertKey, type Caller } from './caller.ts'
import { isEqual } from './is-equal.ts'
import { keepChange, keepEnd } from './keep-change.ts'
import { assertUsable, callerOf, hashKey } from './keys.ts'

const SESSION_MS = 14 * 86_400_000
const LINK_MS = 10 * 60_000

const newSecret = (prefix: string) => prefix + randomBytes(30).toString('base64url')
const afterNow = (ms: number) => new Date(Date.now() + ms).toISOString()

/** What a browser signs in with: an API key, or the secret of a link. */
export type Credential = { key: string } | { link: string }

/** A session, and the secret that its browser sends. The secret is only returned here; the database has its hash. */
export interface NewSession {
  session: Session
  secret: string
}

/** Signs a browser in. Throws unauthorized for a key or link that is not good, and for a token. */
export function signIn(
  runtime: Runtime,
  credential: Credential,
  browser: string,
  request?: Caller['request'],
): NewSession {
  const { db } = runtime
  const secret = newSecret(secretPrefixes.session)
  const session = inTransaction(db, () => {
    const holder = 'key' in credential ? holderOfKey(runtime, credential.key) : holderOfLink(db, credential.link)
    const made = insertSession(db, { ...holder, browser, hash: hashKey(secret), expiresAt: afterNow(SESSION_MS) })
    const caller = { ...holder, sessionId: made.id, ...(request && { request }) }
    const by = 'key' in credential ? 'key' : 'link'
    keepChange(runtime, caller, { action: 'session.created', target: { sessionId: made.id }, detail: { by } })
    return made
  })
  return { session, secret }
}

type Holder = Pick<Session, 'teamId' | 'keyId' | 'configuredKeyHash'>

function holderOfKey(runtime: Runtime, key: string): Holder {
  const { teamId, keyId, token } = authenticate(runtime, `Bearer ${key}`)
  if (token) throw new ApiError('unauthorized', 'A token does not sign in: use an API key.')
  return keyId === undefined ? { teamId, configuredKeyHash: hashKey(key) } : { teamId, keyId }
}

function holderOfLink(db: Database, secret: string): Holder {
  const link = takeSignInLink(db, hashKey(secret))
  if (!link) throw new ApiError('unauthorized', 'The link was used already, or has expired.')
  const { teamId, keyId } = link
  return keyId === undefined ? { teamId } : { teamId, keyId }
}

/**
 * Makes the secret at the end of a sign-in link, which works once and within ten minutes. Without `keyId` the session is the
 * operator's own.
 */
export function createSignInLink(db: Database, holder: { teamId: string; keyId?: string }): string {
  const secret = newSecret(secretPrefixes.signIn)
  insertSignInLink(db, { ...holder, hash: hashKey(secret), expiresAt: afterNow(LINK_MS) })
  return secret
}

/** The caller that a session's secret stands for. Throws unauthorized, also when the key that signed in is no longer good. */
export function authenticateSession({ db, config }: Runtime, secret: string): Caller {
  const session = findSessionByHash(db, hashKey(secret))
  if (!session || session.expiresAt <= new Date().toISOString()) throw ended()
  const { id: sessionId, teamId, keyId, configuredKeyHash } = session
  if (configuredKeyHash !== undefined && !isEqual(configuredKeyHash, hashKey(config.apiKey ?? ''))) throw ended()
  if (keyId === undefined) return { teamId, sessionId }
  const key = findKey(db, keyId)
  if (!key) throw ended()
  assertUsable(key, 'The API key that signed in')
  return { ...callerOf(key), sessionId }
}

const ended = () => new ApiError('unauthorized', 'The session has ended: sign in again.')

/** The browsers that are signed in for the caller's team. Throws forbidden for a token. */
export function listTeamSessions({ db }: Runtime, caller: Caller): Session[] {
  assertKey(caller, 'see sessions')
  return listSessions(db, caller.teamId)
}

/** Signs a browser out. Throws forbidden for a token, and not_found. */
export function endSession(runtime: Runtime, caller: Caller, id: string): void {
  assertKey(caller, 'end sessions')
  keepEnd(runtime, caller, () => {
    if (!deleteSession(runtime.db, caller.teamId, id)) throw new ApiError('not_found', 'There is no such session.')
    return { action: 'session.ended', target: { sessionId: id } }
  })
}
