import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { findThreads } from '../../core/chat/find-threads.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { FoundThread, Thread } from '../../model/thread.ts'
import { getCaller } from '../caller.ts'
import { Id, PageSize, Slug } from '../schema.ts'

const statuses: readonly Thread['status'][] = ['active', 'streaming', 'waiting', 'completed', 'error', 'cancelled']

const ThreadQuery = Type.Object({
  agent: Type.Optional(Slug),
  sandboxId: Type.Optional(Id),
  userId: Type.Optional(Id),
  status: Type.Optional(Type.Unsafe<Thread['status']>(Type.Union(statuses.map(each => Type.Literal(each))))),
  q: Type.Optional(
    Type.String({
      maxLength: bounds.query,
      description: 'Words of one message, of a user or the agent. The last may be the beginning of a word.',
    }),
  ),
  limit: Type.Optional(PageSize),
  before: Type.Optional(Id),
})

const DEFAULT_PAGE = 50

export const allThreadRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/threads' }).get(
    '/',
    async ({ request, query: { limit, ...query } }) => {
      const asked = { ...query, limit: Number(limit ?? DEFAULT_PAGE) }
      const { threads, nextBefore } = await findThreads(runtime, getCaller(request), asked)
      return { threads: threads.map(summary), nextBefore }
    },
    { query: ThreadQuery },
  )

const summary = ({ agentSlug, agentName, ...thread }: FoundThread) => ({
  ...thread,
  agent: { slug: agentSlug, name: agentName },
})
