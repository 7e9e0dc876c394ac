import type { Database } from 'bun:sqlite'
import { setImmediate } from 'node:timers/promises'
import { cutAudit, findAuditBegin, findAuditHead } from '../../db/audit.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { messageOf } from '../../errors.ts'
import type { Config } from '../config.ts'
import type { AuditLog, WriteLine } from './audit-log.ts'
import { startAuditCopy } from './copy.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
/** How often the hash of the last row is written to the operator's log. */
const HEAD_MS = 3_600_000
/** How often rows that are too old are searched for. */
const CUT_MS = 600_000
/** How many rows one transaction removes, so that other requests are answered in between. */
const CUT_ROWS = 2000

export interface AuditParts {
  db: Database
  audit: AuditLog
  config: Pick<Config, 'auditDays' | 'auditFile'>
  log: WriteLine
}

/** Records that a server begins, copies rows, removes old ones and logs the last hash; `close` records that the server ends. */
export function startAudit(parts: AuditParts, detail: { version: string }): { close(): Promise<void> } {
  const { audit, config } = parts
  audit.record({ actor: {}, action: 'server.started', target: {}, outcome: 'done', detail })
  const copying = config.auditFile === undefined ? undefined : startAuditCopy(parts, config.auditFile)
  const heads = setInterval(() => logHead(parts), HEAD_MS)
  const cuts = setInterval(() => void cutOldAudit(parts), CUT_MS)
  void cutOldAudit(parts)
  return {
    async close() {
      clearInterval(heads)
      clearInterval(cuts)
      audit.record({ actor: {}, action: 'server.stopped', target: {}, outcome: 'done' })
      // The failure is logged already.
      await audit.settled().catch(() => {})
      await copying?.close()
      logHead(parts)
    },
  }
}

/** Removes rows that are older than the operator wants to keep. Never rejects: a failure is logged. */
export async function cutOldAudit({ db, config, log }: Pick<AuditParts, 'db' | 'config' | 'log'>): Promise<void> {
  if (config.auditDays === 0) return
  const ageMs = config.auditDays * DAY_MS
  const before = new Date(Date.now() - ageMs).toISOString()
  try {
    // Each cut adds a row itself, so many old rows are cut at once.
    const begin = findAuditBegin(db)
    if (begin === undefined || Date.parse(begin) > Date.now() - ageMs - HOUR_MS) return
    while ((await writeWhenFree(db, () => cutAudit(db, before, CUT_ROWS))) === CUT_ROWS) await setImmediate()
  } catch (error) {
    log(`old rows of the audit log: ${messageOf(error)}`, 'error')
  }
}

/**
 * Writes the last row's number and hash to the operator's log, from where they can prove later that no row before was changed.
 */
function logHead({ db, log }: AuditParts): void {
  try {
    const { seq, hash } = findAuditHead(db)
    log(`audit: head ${seq}:${hash}`)
  } catch (error) {
    log(`audit: ${messageOf(error)}`, 'error')
  }
}
