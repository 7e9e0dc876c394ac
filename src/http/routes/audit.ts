import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import type { Runtime } from '../../core/runtime.ts'
import { listTeamAudit } from '../../core/server/list-audit.ts'
import { ApiError } from '../../errors.ts'
import { getCaller } from '../caller.ts'
import { PageSize } from '../schema.ts'

const Moment = Type.String({ maxLength: bounds.id, description: 'As 2030-01-31T00:00:00Z.' })

const AuditQuery = Type.Object({
  limit: Type.Optional(PageSize),
  /** The number of the last row on the page before. */
  before: Type.Optional(Type.String({ pattern: '^[1-9][0-9]{0,14}$', errorMessage: 'must be a whole number' })),
  action: Type.Optional(
    Type.String({ pattern: '^[a-zA-Z.-]{1,50}$', errorMessage: 'must be an action, or the first word of some' }),
  ),
  since: Type.Optional(Moment),
  until: Type.Optional(Moment),
})

const DEFAULT_PAGE = 50

export const auditRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/audit' }).get(
    '/',
    ({ request, query: { limit, before, action, since, until } }) => {
      const size = Number(limit ?? DEFAULT_PAGE)
      const found = listTeamAudit(runtime, getCaller(request), {
        limit: size + 1,
        ...(before !== undefined && { before: Number(before) }),
        ...(action !== undefined && { action }),
        ...(since !== undefined && { since: readMoment('since', since) }),
        ...(until !== undefined && { until: readMoment('until', until) }),
      })
      const rows = found.slice(0, size)
      return { rows, nextBefore: found.length > size ? (rows.at(-1)?.seq ?? null) : null }
    },
    { query: AuditQuery },
  )

function readMoment(field: string, text: string): string {
  const date = new Date(text)
  if (!Number.isNaN(date.getTime())) return date.toISOString()
  throw new ApiError('invalid_request', `${field}: must be a time like 2030-01-31T00:00:00Z`, { field })
}
