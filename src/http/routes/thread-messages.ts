import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { forkThread } from '../../core/chat/fork.ts'
import { getThread, pageMessages } from '../../core/chat/threads.ts'
import type { Runtime } from '../../core/runtime.ts'
import { getSandbox } from '../../core/sandboxes/sandboxes.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { Id, PageSize, ThreadParams } from '../schema.ts'
import { summary } from './threads.ts'

const MessageQuery = Type.Object({
  limit: Type.Optional(PageSize),
  before: Type.Optional(Id),
  branch: Type.Optional(Type.String({ maxLength: bounds.id, description: 'Gives this branch of it.' })),
})

const Fork = Type.Object({
  messageId: Type.String({ maxLength: bounds.id, description: 'The last message of the copy.' }),
  name: Type.Optional(Type.Union([Type.String({ maxLength: bounds.name }), Type.Null()])),
})

const DEFAULT_PAGE = 50

export function threadMessageRoutes(runtime: Runtime) {
  const threadOf = (request: Request, { sandboxId, threadId }: Static<typeof ThreadParams>) => {
    const caller = getCaller(request)
    return getThread(runtime, caller, getSandbox(runtime, caller, sandboxId), threadId)
  }
  return new Elysia({ prefix: '/v1/sandboxes/:sandboxId/threads/:threadId' })
    .get(
      '/messages',
      ({ request, params, query: { limit, before, branch } }) =>
        pageMessages(runtime, threadOf(request, params), {
          limit: Number(limit ?? DEFAULT_PAGE),
          ...(before !== undefined && { before }),
          ...(branch !== undefined && { branch }),
        }),
      { params: ThreadParams, query: MessageQuery },
    )
    .post(
      '/fork',
      async ({ request, params, body, status }) =>
        status(201, summary(await forkThread(runtime, threadOf(request, params), body))),
      { params: ThreadParams, ...json(Fork) },
    )
}
