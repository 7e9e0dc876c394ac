import type { Database } from 'bun:sqlite'
import { appendAudit } from '../db/audit.ts'
import type { AuditFact } from '../model/audit.ts'

/** Adds the audit row of a change by a command that runs beside a server. Call it in the transaction of the change. */
export const keepCommand = (
  db: Database,
  command: string,
  change: Pick<AuditFact, 'teamId' | 'action' | 'target' | 'detail'> & { outcome?: string },
): void => appendAudit(db, [{ actor: { command, uid: process.getuid?.() ?? 0 }, outcome: 'done', ...change }])
