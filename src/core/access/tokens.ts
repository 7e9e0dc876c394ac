import type { Database } from 'bun:sqlite'
import { secretPrefixes } from '../../model/prefixes.ts'
import type { Runtime } from '../runtime.ts'
import { assertKey, type Caller, causeOf, type TokenScope } from './caller.ts'
import { type Grant, readGrant, writeGrant } from './grants.ts'

const PREFIX = secretPrefixes.token

/** Makes a signed token of the caller's team, for a browser. Throws forbidden for a caller that has a token itself. */
export function createToken(
  { db, audit }: Runtime,
  caller: Caller,
  { lifetimeMs, ...scope }: TokenScope & { lifetimeMs: number },
): { token: string; expiresAt: string } {
  assertKey(caller, 'make tokens')
  const expires = Math.floor((Date.now() + lifetimeMs) / 1000)
  const { teamId, keyId } = caller
  const grant: Grant = { teamId, expires, ...scope, ...(keyId !== undefined && { keyId }) }
  const expiresAt = new Date(expires * 1000).toISOString()
  // The database has no row for a token, so the audit log is the only place that knows of it.
  audit.record({
    ...{ teamId, actor: { ...causeOf(caller) }, action: 'token.created', target: {}, outcome: 'done' },
    detail: { expiresAt, ...scope },
  })
  return { token: writeGrant(db, PREFIX, grant), expiresAt }
}

export const isToken = (credential: string): boolean => credential.startsWith(PREFIX)

/** Returns the caller that a token stands for. Throws unauthorized. */
export function readToken(db: Database, token: string): Caller {
  const { grant, standing } = readGrant<Grant>(db, PREFIX, token)
  const { teamId, keyId, expires, ...scope } = grant
  return { teamId, token: scope, expires, ...(keyId !== undefined && { keyId }), ...standing }
}
