import { join } from 'node:path'
import { readSchema } from '../../db/copy-schema.ts'
import { migrations } from '../../db/schema.ts'
import { messageOf } from '../../errors.ts'
import type { AuditFact } from '../../model/audit.ts'
import { openData } from '../../start/data.ts'
import { keepCommand } from '../keep-command.ts'

/**
 * Keeps in the audit log that this executable is replaced. A database that is not there, or of another schema because the
 * new executable has it already, is left as it is: the start of its server is a row with the version. Never rejects.
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
    // The upgrade is not to fail for want of its row.
    console.error(`threadbox: the audit log has no row of this upgrade: ${messageOf(error)}`)
  }
}
