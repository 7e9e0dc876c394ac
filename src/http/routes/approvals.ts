import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { answerApproval, getApproval, listVisibleApprovals, showApproval } from '../../core/approvals/approvals.ts'
import type { Runtime } from '../../core/runtime.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { Id, PageSize } from '../schema.ts'

const ApprovalParams = Type.Object({ approvalId: Type.String() })

const ApprovalQuery = Type.Object({
  status: Type.Optional(
    Type.Union([
      Type.Literal('pending'),
      Type.Literal('approved'),
      Type.Literal('denied'),
      Type.Literal('expired'),
      Type.Literal('cancelled'),
    ]),
  ),
  sandboxId: Type.Optional(Id),
  threadId: Type.Optional(Id),
  limit: Type.Optional(PageSize),
  /** The id of the last one of the page before. */
  before: Type.Optional(Id),
})

/** Unknown fields are refused: one may be meant to restrict what is approved. */
const Answer = Type.Object(
  {
    approved: Type.Boolean(),
    reason: Type.Optional(
      Type.String({ maxLength: bounds.name, description: 'The agent reads why its call was denied.' }),
    ),
    remember: Type.Optional(
      Type.Union([Type.Literal('thread'), Type.Literal('agent')], {
        description: 'Allows such calls from now on: in this thread, or to this agent. For the agent with a key alone.',
      }),
    ),
  },
  { additionalProperties: false },
)

const DEFAULT_PAGE = 50

export const approvalRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/approvals', normalize: false })
    .get(
      '/',
      ({ request, query: { limit, ...query } }) => {
        const size = Number(limit ?? DEFAULT_PAGE)
        const found = listVisibleApprovals(runtime, getCaller(request), { ...query, limit: size + 1 })
        const approvals = found.slice(0, size)
        return {
          approvals: approvals.map(showApproval),
          nextBefore: found.length > size ? (approvals.at(-1)?.id ?? null) : null,
        }
      },
      { query: ApprovalQuery },
    )
    .get(
      '/:approvalId',
      ({ request, params: { approvalId } }) => showApproval(getApproval(runtime, getCaller(request), approvalId)),
      { params: ApprovalParams },
    )
    .post(
      '/:approvalId',
      async ({ request, params: { approvalId }, body }) =>
        showApproval(await answerApproval(runtime, getCaller(request), approvalId, body)),
      { params: ApprovalParams, ...json(Answer) },
    )
