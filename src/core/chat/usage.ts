import { usageBy } from '../../db/model-calls.ts'
import { roundUsd } from '../../db/usd.ts'
import { ApiError } from '../../errors.ts'
import type { GroupBy, UsageGroup, UsageSums } from '../../model/usage.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'

export const usageGroups: readonly GroupBy[] = ['agent', 'thread', 'key', 'model', 'day']

export interface Usage {
  groupBy: GroupBy
  groups: UsageGroup[]
  total: UsageSums
}

/** What the team's model calls used. Throws forbidden for a token, invalid_request for a moment that cannot be read. */
export function sumTeamUsage(
  { db }: Runtime,
  caller: Caller,
  { groupBy, ...span }: { groupBy: GroupBy; from?: string; to?: string },
): Usage {
  if (caller.token) throw new ApiError('forbidden', 'A token cannot see usage: use an API key.')
  const from = parseMoment('from', span.from)
  const to = parseMoment('to', span.to)
  const groups = usageBy(db, caller.teamId, groupBy, { ...(from && { from }), ...(to && { to }) })
  const total = { calls: 0, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: 0 }
  for (const group of groups) {
    total.calls += group.calls
    total.inputTokens += group.inputTokens
    total.outputTokens += group.outputTokens
    total.cacheReadTokens += group.cacheReadTokens
    total.cacheWriteTokens += group.cacheWriteTokens
    total.costUsd = roundUsd(total.costUsd + group.costUsd)
  }
  return { groupBy, groups, total }
}

/** Parses a moment to the form that is stored. A day stands for its beginning, UTC. */
function parseMoment(field: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const timeMs = Date.parse(text)
  if (!/^\d{4}-\d\d-\d\d/.test(text) || Number.isNaN(timeMs)) {
    throw new ApiError('invalid_request', `${field}: not a date or time of ISO 8601`, { field })
  }
  return new Date(timeMs).toISOString()
}
