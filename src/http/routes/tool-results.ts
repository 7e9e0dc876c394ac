import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { giveToolResult } from '../../core/approvals/tool-results.ts'
import { getThread } from '../../core/chat/threads.ts'
import type { Runtime } from '../../core/runtime.ts'
import { getSandbox } from '../../core/sandboxes/sandboxes.ts'
import { ApiError } from '../../errors.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { Id, ThreadParams } from '../schema.ts'

const ToolResult = Type.Object({
  toolCallId: Id,
  output: Type.Optional(Type.Unknown({ description: 'What the tool gave: any JSON.' })),
  errorText: Type.Optional(Type.String({ maxLength: bounds.bodyBytes, description: 'Why it gave nothing.' })),
})

export const toolResultRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/sandboxes/:sandboxId/threads/:threadId/tool-results', normalize: false }).post(
    '/',
    async ({ request, params: { sandboxId, threadId }, body, status }) => {
      const caller = getCaller(request)
      const thread = getThread(runtime, caller, getSandbox(runtime, caller, sandboxId), threadId)
      const { toolCallId, output, errorText } = body
      if ((output === undefined) === (errorText === undefined)) {
        throw new ApiError('invalid_request', 'output: give it, or errorText, and not both', { field: 'output' })
      }
      const answer = errorText === undefined ? { output } : { errorText }
      return status(202, await giveToolResult(runtime, caller, thread, toolCallId, answer))
    },
    { params: ThreadParams, ...json(ToolResult) },
  )
