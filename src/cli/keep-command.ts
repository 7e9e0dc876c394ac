import type { Database } from 'bun:sqlite'
import { appendAudit } from '../db/audit.ts'
import type { AuditFact } from '../model/audit.ts'

/** Keeps in the audit log what a command beside a server has changed: call it in the transaction of the change. */
export const keepCommand = (
  db: Database,
  command: string,
  change: Pick<AuditFact, 'teamId' | 'action' | 'target' | 'detail'> & { outcome?: string },
): void => appendAudit(db, [{ actor: { command, uid: process.getuid?.() ?? 0 }, outcome: 'done', ...change }])
