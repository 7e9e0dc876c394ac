import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../bounds.ts'
import { getSandbox } from '../core/sandboxes.ts'
import { createThread, getThread, removeThread, threadDetail, threadsOf } from '../core/threads.ts'
import type { Thread } from '../db/threads.ts'
import type { Runtime } from '../runtime.ts'
import { optionalJson } from './body.ts'
import { callerOf } from './caller.ts'
import { ExternalUserId, SandboxParams, ThreadParams } from './schema.ts'

const CreateThread = Type.Object({
  externalUserId: Type.Optional(ExternalUserId),
  name: Type.Optional(Type.Union([Type.String({ maxLength: bounds.name }), Type.Null()])),
})

export const threadRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/sandboxes/:sandboxId/threads' })
    .get(
      '/',
      ({ request, params: { sandboxId } }) => {
        const caller = callerOf(request)
        return threadsOf(runtime, caller, getSandbox(runtime, caller, sandboxId)).map(summary)
      },
      { params: SandboxParams },
    )
    .post(
      '/',
      ({ request, params: { sandboxId }, body, status }) => {
        const caller = callerOf(request)
        const thread = createThread(runtime, caller, getSandbox(runtime, caller, sandboxId), body)
        return status(201, summary(thread))
      },
      { params: SandboxParams, ...optionalJson(CreateThread) },
    )
    .get(
      '/:threadId',
      ({ request, params: { sandboxId, threadId } }) => {
        const caller = callerOf(request)
        const thread = getThread(runtime, caller, getSandbox(runtime, caller, sandboxId), threadId)
        const { messages, usage, error, completedAt } = threadDetail(runtime, thread)
        return { ...summary(thread), messages, usage, error, completedAt }
      },
      { params: ThreadParams },
    )
    .delete(
      '/:threadId',
      async ({ request, params: { sandboxId, threadId }, status }) => {
        const caller = callerOf(request)
        await removeThread(runtime, getThread(runtime, caller, getSandbox(runtime, caller, sandboxId), threadId))
        return status(204, undefined)
      },
      { params: ThreadParams },
    )

const summary = ({ id, name, status, createdAt, updatedAt }: Thread) => ({ id, name, status, createdAt, updatedAt })
