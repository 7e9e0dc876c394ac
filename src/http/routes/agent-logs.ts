import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { getSession, getSessionThread, listSessions, type Session } from '../../core/chat/agent-sessions.ts'
import type { Runtime } from '../../core/runtime.ts'
import { ApiError } from '../../errors.ts'
import { getCaller } from '../caller.ts'
import { Id, Moment } from '../schema.ts'

/** The sessions and logs of an agent, for its deployer. Clients expect names with underscores. */

const LogQuery = Type.Object({
  status: Type.Optional(Type.Union([Type.Literal('active'), Type.Literal('error')])),
  search: Type.Optional(Type.String({ maxLength: 200 })),
  createdAfter: Type.Optional(Moment),
  createdBefore: Type.Optional(Moment),
  limit: Type.Optional(
    Type.String({ pattern: '^([1-9][0-9]?|100)$', errorMessage: 'must be a whole number from 1 to 100' }),
  ),
  cursor: Type.Optional(Type.String({ maxLength: bounds.id, description: 'nextCursor of the page before' })),
})

const DEFAULT_LIMIT = 20

export const agentLogRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/agents/:slug/logs' })
    .get(
      '/',
      ({ request, params: { slug }, query }) => {
        const { status, search, createdAfter, createdBefore, cursor } = query
        const limit = Number(query.limit ?? DEFAULT_LIMIT)
        const { agentId, sessions, logs } = listSessions(runtime, getCaller(request), slug, {
          limit: limit + 1,
          ...(status && { hasFailed: status === 'error' }),
          ...(search && { search }),
          ...(createdAfter && { from: parseMoment('createdAfter', createdAfter) }),
          ...(createdBefore && { to: parseMoment('createdBefore', createdBefore) }),
          ...(cursor && { before: cursor }),
        })
        const page = sessions.slice(0, limit)
        const last = page.at(-1)
        return {
          sandboxes: page.map(session => toSandbox(session, agentId)),
          ...(sessions.length > limit && last && { nextCursor: last.sandbox.id }),
          logs,
        }
      },
      { params: Type.Object({ slug: Type.String() }), query: LogQuery },
    )
    .get(
      '/:sandboxId',
      ({ request, params: { slug, sandboxId }, query: { threadId } }) => {
        const caller = getCaller(request)
        const session = getSession(runtime, caller, slug, sandboxId)
        const { threads, ...sandbox } = toSandbox(session, session.agentId)
        if (threadId === undefined) return { sandbox: { ...sandbox, threads } }
        const thread = getSessionThread(runtime, caller, session, threadId)
        return { sandbox, thread: { ...toThread(thread), messages: thread.messages } }
      },
      {
        params: Type.Object({ slug: Type.String(), sandboxId: Type.String() }),
        query: Type.Object({ threadId: Type.Optional(Id) }),
      },
    )

const toSandbox = ({ sandbox, threads }: Session, agentId: string) => ({
  id: sandbox.id,
  client_sandbox_id: sandbox.id,
  sandbox_id: sandbox.environmentId,
  status: threads.some(({ status }) => status === 'error') ? 'error' : sandbox.status,
  error: sandbox.error ?? null,
  created_at: sandbox.createdAt,
  updated_at: sandbox.updatedAt,
  agent: { id: agentId, name: sandbox.agentName, slug: sandbox.agentSlug },
  threads: threads.map(toThread),
})

const toThread = (thread: Session['threads'][number]) => ({
  id: thread.id,
  status: thread.status,
  stream_id: null,
  claude_session_id: null,
  input_tokens: thread.usage.inputTokens,
  output_tokens: thread.usage.outputTokens,
  total_tokens: thread.usage.totalTokens,
  total_cost_usd: thread.usage.totalCostUsd,
  duration_ms: thread.usage.durationMs,
  created_at: thread.createdAt,
  completed_at: thread.completedAt,
  error: thread.error,
})

function parseMoment(field: string, text: string): string {
  const moment = new Date(text)
  if (Number.isNaN(moment.getTime()))
    throw new ApiError('invalid_request', `${field}: must be a date or time of ISO 8601, as 2026-01-31T12:00:00Z`, {
      field,
    })
  return moment.toISOString()
}
