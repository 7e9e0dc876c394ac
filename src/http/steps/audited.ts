import type { AuditLog } from '../../core/audit/audit-log.ts'
import type { Step } from './step.ts'

/**
 * Answers a request that may change something when what it did is in the audit log. A database that takes no rows holds
 * nobody up: rows wait in memory then.
 */
export const audited =
  (audit: AuditLog): Step =>
  async ({ request: { method } }, next) => {
    const response = await next()
    if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS') audit.flush()
    return response
  }
