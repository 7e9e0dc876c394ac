import { join } from 'node:path'
import { readSchema } from '../../db/copy-schema.ts'
import { migrations } from '../../db/schema.ts'
import { messageOf } from '../../errors.ts'
import type { AuditFact } from '../../model/audit.ts'
import { openData } from '../../start/data.ts'
import { keepCommand } from '../keep-command.ts'

/**
 * Adds the audit row that this executable was replaced. Nothing is written when there is no database, or when its schema differs
 * because the new executable has migrated it: the row of its server's start names the version then. Never rejects.
 */
export async function keepUpgrade(
  dataDirectory: string,
  upgrade: Pick<AuditFact, 'outcome' | 'target' | 'detail'>,
): Promise<void> {
  try {
    if (readSchema(join(dataDirectory, 'threadbox.db')) !== migrations.length) return
    using db = await openData(dataDirectory)
    keepCommand(db, 'upgrade', { action: 'upgrade', ...upgrade })
  } catch (error) {
    // An upgrade must not fail because its row cannot be written.
    console.error(`threadbox: the audit log has no row of this upgrade: ${messageOf(error)}`)
  }
}
