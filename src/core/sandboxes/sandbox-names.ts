import { hasSandboxName } from '../../db/sandboxes.ts'
import { ApiError } from '../../errors.ts'
import { assertKey, type Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'

/** Throws conflict for a name that a sandbox of the team has, forbidden for a token: end users do not learn each other's names. */
export function assertFreeName({ db }: Pick<Runtime, 'db'>, caller: Caller, name: string | undefined): void {
  if (name === undefined) return
  assertKey(caller, 'name a sandbox')
  if (hasSandboxName(db, caller.teamId, name)) {
    throw new ApiError('conflict', 'name: a sandbox has this name already', { field: 'name' })
  }
}
