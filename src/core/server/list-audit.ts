import { listAudit } from '../../db/audit.ts'
import type { AuditPage, AuditRow } from '../../model/audit.ts'
import { assertKey, type Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'

/** A row of the chain with its hash. */
export type ShownAudit = AuditRow & { hash: string }

/** A page of what was done in the caller's team, newest first. Throws forbidden for a token. */
export function listTeamAudit({ db }: Runtime, caller: Caller, page: Omit<AuditPage, 'teamId'>): ShownAudit[] {
  assertKey(caller, 'see the audit log')
  return listAudit(db, { ...page, teamId: caller.teamId }).map(({ entry, hash }) => ({
    ...(JSON.parse(entry) as AuditRow),
    hash,
  }))
}
