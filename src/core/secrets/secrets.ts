import { bounds } from '../../bounds.ts'
import { inTransaction } from '../../db/open.ts'
import { deleteSecret, findBound, findSecret, listSecrets, saveSecret } from '../../db/secrets.ts'
import { ApiError } from '../../errors.ts'
import type { Secret } from '../../model/secret.ts'
import { assertKey, type Caller } from '../access/caller.ts'
import { keepChange, keepEnd } from '../access/keep-change.ts'
import type { Runtime } from '../runtime.ts'

/** A shorter value would be found everywhere in answers, from which it is removed. */
const MIN_CHARS = 4

/** A secret, and which agents and sandboxes may use it. */
export interface ListedSecret extends Secret {
  /** The slugs of agents. */
  agents: string[]
  sandboxes: number
}

/** The secrets of the caller's team, by name. Throws forbidden for a token. */
export function listOwnSecrets({ db }: Pick<Runtime, 'db'>, caller: Caller): ListedSecret[] {
  assertKey(caller, 'see secrets')
  return listWithBound(db, caller.teamId)
}

export function listWithBound(db: Runtime['db'], teamId: string): ListedSecret[] {
  const bound = findBound(db, teamId)
  return listSecrets(db, teamId).map(secret => ({ agents: [], sandboxes: 0, ...bound.get(secret.name), ...secret }))
}

/**
 * Stores a value, which running sandboxes use from their next request on. Throws forbidden for a token, invalid_request and
 * conflict.
 */
export function setSecret(runtime: Runtime, caller: Caller, name: string, value: string): Secret {
  assertKey(caller, 'set secrets')
  return inTransaction(runtime.db, () => {
    const secret = storeSecret(runtime.db, caller.teamId, name, value)
    keepChange(runtime, caller, { action: 'secret.set', target: { name } })
    return secret
  })
}

/** Throws invalid_request for a value that cannot be a secret, and conflict when the team has too many. */
export function storeSecret(db: Runtime['db'], teamId: string, name: string, value: string): Secret {
  const fault = faultOfValue(value)
  if (fault) throw new ApiError('invalid_request', `value: ${fault}`, { field: 'value' })
  if (!findSecret(db, teamId, name) && listSecrets(db, teamId).length >= bounds.secrets)
    throw new ApiError('conflict', `A team has at most ${bounds.secrets} secrets.`)
  return saveSecret(db, { teamId, name, value })
}

function faultOfValue(value: string): string | undefined {
  if (value.length < MIN_CHARS) return `must have ${MIN_CHARS} characters or more`
  if (value.length > bounds.secret) return `must have no more than ${bounds.secret} characters`
  if (value.includes('\0') || !value.isWellFormed()) return 'must be text'
  return undefined
}

/** Removes a secret, which running sandboxes cannot use any more. Throws forbidden for a token, and not_found. */
export function removeSecret(runtime: Runtime, caller: Caller, name: string): void {
  assertKey(caller, 'remove secrets')
  keepEnd(runtime, caller, () => {
    if (!deleteSecret(runtime.db, caller.teamId, name)) throw new ApiError('not_found', 'There is no such secret.')
    return { action: 'secret.removed', target: { name } }
  })
}
