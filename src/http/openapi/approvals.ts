import { Type } from '@sinclair/typebox'
import { answer, noContent, nullable, type Operations, Timestamp } from './operation.ts'

const words = (...all: string[]) => Type.Union(all.map(word => Type.Literal(word)))

const Approval = Type.Object(
  {
    id: Type.String(),
    agent: Type.String(),
    sandboxId: Type.String(),
    threadId: Type.String(),
    runId: Type.String({ description: 'The run that asked.' }),
    messageId: Type.String({ description: 'The reply that has the call.' }),
    toolCallId: Type.String(),
    kind: words('tool', 'budget'),
    tool: Type.String(),
    input: Type.Unknown(),
    reason: nullable(Type.String({ description: 'Why it is asked.' })),
    status: words('pending', 'approved', 'denied', 'expired', 'cancelled'),
    answerReason: nullable(Type.String()),
    answeredBy: nullable(Type.String({ description: 'The end user or the API key that decided.' })),
    remember: nullable(words('thread', 'agent')),
    createdAt: Timestamp,
    expiresAt: Timestamp,
    answeredAt: nullable(Timestamp),
  },
  { title: 'Approval' },
)

const Continued = Type.Object(
  { sandboxId: Type.String(), threadId: Type.String(), status: words('running', 'waiting') },
  { title: 'Continued' },
)

const Rule = Type.Object(
  {
    id: Type.String(),
    rule: Type.String(),
    threadId: nullable(Type.String({ description: 'Null: it holds in all threads of the agent.' })),
    createdAt: Timestamp,
  },
  { title: 'Rule' },
)

export const approvalOperations: Operations = {
  'GET /v1/approvals': {
    id: 'listApprovals',
    summary: 'Lists what agents have asked a person, newest first',
    tag: 'Approvals',
    answers: {
      200: answer(Type.Object({ approvals: Type.Array(Approval), nextBefore: nullable(Type.String()) })),
    },
  },
  'GET /v1/approvals/:approvalId': {
    id: 'getApproval',
    summary: 'Gives one approval',
    tag: 'Approvals',
    answers: { 200: answer(Approval) },
  },
  'POST /v1/approvals/:approvalId': {
    id: 'answerApproval',
    summary: 'Approves or denies a call',
    description: 'When the reply waits for nothing more, it goes on in the background.',
    tag: 'Approvals',
    answers: { 200: answer(Approval) },
    errors: ['already_answered'],
  },
  'GET /v1/agents/:slug/rules': {
    id: 'listRules',
    summary: 'Lists the calls that people have approved for good',
    tag: 'Approvals',
    answers: { 200: answer(Type.Object({ rules: Type.Array(Rule) })) },
  },
  'DELETE /v1/agents/:slug/rules/:ruleId': {
    id: 'deleteRule',
    summary: 'Lets such calls ask again',
    tag: 'Approvals',
    answers: { 204: noContent },
    errors: ['not_found'],
  },
  'POST /v1/sandboxes/:sandboxId/threads/:threadId/tool-results': {
    id: 'giveToolResult',
    summary: "Gives the output of a client's tool",
    description: 'When the reply waits for nothing more, it goes on in the background.',
    tag: 'Chat',
    answers: { 202: answer(Continued, '`running`: the reply goes on. `waiting`: it waits for other answers.') },
    errors: ['call_not_found', 'already_answered'],
  },
}
