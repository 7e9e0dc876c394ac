import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { describeBranches, switchBranch } from '../../core/chat/branches.ts'
import { resumeQueue, runNext } from '../../core/chat/run-next.ts'
import {
  createThread,
  getThread,
  listVisibleThreads,
  messagePages,
  nameThread,
  pageMessages,
  removeThread,
  sumUsage,
  visibleThreadPages,
} from '../../core/chat/threads.ts'
import { isQueueStopped, listQueue, takeBack } from '../../core/queue/queue.ts'
import type { Runtime } from '../../core/runtime.ts'
import { getSandbox } from '../../core/sandboxes/sandboxes.ts'
import type { Thread } from '../../model/thread.ts'
import { json, optionalJson } from '../body.ts'
import { getCaller } from '../caller.ts'
import { inPieces } from '../pieces.ts'
import { ExternalUserId, PageSize, SandboxParams, ThreadParams } from '../schema.ts'

const CreateThread = Type.Object({
  externalUserId: Type.Optional(ExternalUserId),
  name: Type.Optional(Type.Union([Type.String({ maxLength: bounds.name }), Type.Null()])),
})

const PageQuery = Type.Object({
  limit: Type.Optional(PageSize),
  /** The id of the last item on the page before. */
  before: Type.Optional(Type.String({ maxLength: bounds.id })),
})

const MessageQuery = Type.Composite([
  PageQuery,
  Type.Object({
    branch: Type.Optional(Type.String({ maxLength: bounds.id, description: 'Gives this branch of it.' })),
  }),
])

const ChangeThread = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: bounds.name })),
  branch: Type.Optional(
    Type.String({ maxLength: bounds.id, description: 'The branch that it shows from now on, and goes on with.' }),
  ),
})

const DEFAULT_PAGE = 50

const QueuedParams = Type.Object({ ...ThreadParams.properties, messageId: Type.String({ maxLength: bounds.id }) })

/** Over 100 lines: it is a list of routes. */
export function threadRoutes(runtime: Runtime) {
  const threadOf = (request: Request, { sandboxId, threadId }: Static<typeof ThreadParams>) => {
    const caller = getCaller(request)
    return getThread(runtime, caller, getSandbox(runtime, caller, sandboxId), threadId)
  }
  const describeQueue = ({ id }: Thread) => ({
    queue: listQueue(runtime, id),
    isStopped: isQueueStopped(runtime, id),
  })
  return new Elysia({ prefix: '/v1/sandboxes/:sandboxId/threads' })
    .get(
      '/',
      ({ request, params: { sandboxId }, query: { limit, before } }) => {
        const caller = getCaller(request)
        const sandbox = getSandbox(runtime, caller, sandboxId)
        const from = before === undefined ? {} : { before }
        if (limit !== undefined)
          return listVisibleThreads(runtime, caller, sandbox, { ...from, limit: Number(limit) }).map(summary)
        return inPieces(visibleThreadPages(runtime, caller, sandbox, before).map(page => page.map(summary)))
      },
      { params: SandboxParams, query: PageQuery },
    )
    .post(
      '/',
      ({ request, params: { sandboxId }, body, status }) => {
        const caller = getCaller(request)
        const thread = createThread(runtime, caller, getSandbox(runtime, caller, sandboxId), body)
        return status(201, summary(thread))
      },
      { params: SandboxParams, ...optionalJson(CreateThread) },
    )
    .get(
      '/:threadId',
      ({ request, params, query: { limit, before, branch } }) => {
        const thread = threadOf(request, params)
        const { error, completedAt } = thread
        const queue = listQueue(runtime, thread.id)
        const usage = sumUsage(runtime, thread)
        const fields = { ...summary(thread), usage, error, completedAt, ...(queue.length > 0 && { queue }) }
        if (limit !== undefined || before !== undefined) {
          const page = {
            limit: Number(limit ?? DEFAULT_PAGE),
            ...(before !== undefined && { before }),
            ...(branch !== undefined && { branch }),
          }
          return { ...fields, ...pageMessages(runtime, thread, page) }
        }
        return inPieces(messagePages(runtime, thread, branch), { fields, name: 'messages' })
      },
      { params: ThreadParams, query: MessageQuery },
    )
    .patch(
      '/:threadId',
      async ({ request, params, body: { branch, name } }) => {
        const thread = threadOf(request, params)
        // It may be refused, and then nothing is changed.
        if (branch !== undefined) await switchBranch(runtime, thread, branch)
        if (name !== undefined) await nameThread(runtime, thread, name)
        return summary(threadOf(request, params))
      },
      { params: ThreadParams, ...json(ChangeThread) },
    )
    .delete(
      '/:threadId',
      async ({ request, params: { sandboxId, threadId }, status }) => {
        const caller = getCaller(request)
        await removeThread(runtime, getThread(runtime, caller, getSandbox(runtime, caller, sandboxId), threadId))
        return status(204, undefined)
      },
      { params: ThreadParams },
    )
    .get(
      '/:threadId/branches',
      ({ request, params }) => ({ branches: describeBranches(runtime, threadOf(request, params)), nextBefore: null }),
      { params: ThreadParams },
    )
    .get('/:threadId/queue', ({ request, params }) => describeQueue(threadOf(request, params)), {
      params: ThreadParams,
    })
    .post(
      '/:threadId/queue/resume',
      ({ request, params }) => {
        const thread = threadOf(request, params)
        resumeQueue(runtime, thread)
        return describeQueue(thread)
      },
      { params: ThreadParams },
    )
    .delete(
      '/:threadId/queue/:messageId',
      ({ request, params: { messageId, ...params }, status }) => {
        const thread = threadOf(request, params)
        takeBack(runtime, thread.id, messageId)
        // What it held up may go on.
        runNext(runtime, thread.id)
        return status(204, undefined)
      },
      { params: QueuedParams },
    )
}

export const summary = ({ id, name, status, createdAt, updatedAt }: Thread) => ({
  id,
  name,
  status,
  createdAt,
  updatedAt,
})
