import type { AuditLog } from '../../core/audit/audit-log.ts'
import type { Step } from './step.ts'

/**
 * Answers a request that may change something only after its rows are in the audit log. When the database accepts no rows, they
 * wait in memory and the request is answered.
 */
export const audited =
  (audit: AuditLog): Step =>
  async ({ request: { method } }, next) => {
    const response = await next()
    if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS') audit.flush()
    return response
  }
