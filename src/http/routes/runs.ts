import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { findRuns, getRun } from '../../core/chat/find-runs.ts'
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

const DEFAULT_PAGE = 50

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
      { params: Type.Object({ runId: Type.String() }) },
    )

const summary = ({ inputTokens, outputTokens, costUsd, ...run }: FoundRun) => ({
  ...run,
  usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, totalCostUsd: costUsd },
})
