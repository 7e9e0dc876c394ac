import { SQLiteError } from 'bun:sqlite'
import { isBusy } from '../../db/busy.ts'
import { inTransaction } from '../../db/open.ts'
import type { AuditFact } from '../../model/audit.ts'
import type { Runtime } from '../runtime.ts'
import { type Caller, causeOf } from './caller.ts'

type Change = Pick<AuditFact, 'action' | 'target' | 'detail'>

const factOf = (caller: Caller, change: Change): AuditFact => ({
  ...{ teamId: caller.teamId, actor: { ...causeOf(caller) }, outcome: 'done' },
  ...change,
})

/** Adds the audit row of a caller's change. Call it in the transaction of that change. Throws what the database throws. */
export const keepChange = ({ audit }: Pick<Runtime, 'audit'>, caller: Caller, change: Change): void =>
  audit.add(factOf(caller, change))

/**
 * Ends or removes something in a transaction and adds its audit row. When there is no room for the row, as on a full disk, `end`
 * runs nevertheless and the row waits in memory. Throws what `end` throws; `end` may be called twice.
 */
export function keepEnd({ db, audit }: Pick<Runtime, 'db' | 'audit'>, caller: Caller, end: () => Change): void {
  try {
    inTransaction(db, () => audit.add(factOf(caller, end())))
  } catch (error) {
    if (!(error instanceof SQLiteError) || isBusy(error)) throw error
    audit.record(factOf(caller, inTransaction(db, end)))
  }
}
