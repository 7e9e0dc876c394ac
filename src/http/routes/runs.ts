import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { findRuns, getRun, listRunEvents } from '../../core/chat/find-runs.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { FoundRun } from '../../model/found-run.ts'
import type { RunStatus } from '../../model/run.ts'
import { getCaller } from '../caller.ts'
import { Id, PageSize } from '../schema.ts'

const statuses: readonly RunStatus[] = ['active', 'waiting', 'completed', 'cancelled', 'failed', 'interrupted']

const RunQuery = Type.Object({
  threadId: Type.Optional(Id),
  sandboxId: Type.Optional(Id),
  status: Type.Optional(Type.Unsafe<RunStatus>(Type.Union(statuses.map(each => Type.Literal(each))))),
  limit: Type.Optional(PageSize),
  before: Type.Optional(Id),
})

const EventsQuery = Type.Object({
  after: Type.Optional(
    Type.String({
      pattern: '^[0-9]{1,15}$',
      errorMessage: 'must be the seq of an event',
      description: 'The `nextAfter` of the page before.',
    }),
  ),
  limit: Type.Optional(PageSize),
})

const RunParams = Type.Object({ runId: Type.String() })

const DEFAULT_PAGE = 50
const DEFAULT_EVENTS = 500

export const runRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/runs' })
    .get(
      '/',
      async ({ request, query: { limit, ...query } }) => {
        const asked = { ...query, limit: Number(limit ?? DEFAULT_PAGE) }
        const { runs, nextBefore } = await findRuns(runtime, getCaller(request), asked)
        return { runs: runs.map(summary), nextBefore }
      },
      { query: RunQuery },
    )
    .get(
      '/:runId',
      async ({ request, params: { runId } }) => {
        const { tools, ...run } = await getRun(runtime, getCaller(request), runId)
        return { ...summary(run), tools }
      },
      { params: RunParams },
    )
    .get(
      '/:runId/events',
      ({ request, params: { runId }, query: { after = 0, limit = DEFAULT_EVENTS } }) =>
        listRunEvents(runtime, getCaller(request), runId, { after: Number(after), limit: Number(limit) }),
      { params: RunParams, query: EventsQuery },
    )

const summary = ({ inputTokens, outputTokens, costUsd, ...run }: FoundRun) => ({
  ...run,
  usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, totalCostUsd: costUsd },
})
