import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { sumTeamUsage, usageGroups } from '../../core/chat/usage.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { GroupBy } from '../../model/usage.ts'
import { getCaller } from '../caller.ts'

const UsageQuery = Type.Object({
  groupBy: Type.Optional(Type.Unsafe<GroupBy>(Type.Union(usageGroups.map(name => Type.Literal(name))))),
  from: Type.Optional(
    Type.String({ maxLength: bounds.moment, description: 'ISO 8601; the day or moment it begins with' }),
  ),
  to: Type.Optional(
    Type.String({ maxLength: bounds.moment, description: 'ISO 8601; the day or moment before which it ends' }),
  ),
})

export const usageRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/usage' }).get(
    '/',
    ({ request, query: { groupBy = 'day', ...span } }) =>
      sumTeamUsage(runtime, getCaller(request), { groupBy, ...span }),
    { query: UsageQuery },
  )
