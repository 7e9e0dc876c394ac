import { Type } from '@sinclair/typebox'
import { answer, EVENT_STREAM, Events, noContent, nullable, type Operations, Timestamp } from './operation.ts'

export const ThreadStatus = Type.String({
  description: '`active` when made, `streaming` during a run, then `waiting`, `completed`, `error` or `cancelled`.',
})

const summary = {
  id: Type.String(),
  name: nullable(Type.String()),
  status: ThreadStatus,
  createdAt: Timestamp,
  updatedAt: Timestamp,
}

const ThreadSummary = Type.Object(summary, { title: 'ThreadSummary' })

const FoundThread = Type.Object(
  {
    ...summary,
    sandboxId: Type.String(),
    agent: Type.Object({ slug: Type.String(), name: Type.String() }),
    externalUserId: nullable(Type.String()),
    error: nullable(Type.String()),
    completedAt: nullable(Timestamp),
  },
  { title: 'FoundThread' },
)

const NextBefore = nullable(Type.String({ description: 'The next page is asked for with `before` set to this.' }))

const ThreadPage = Type.Object({ threads: Type.Array(FoundThread), nextBefore: NextBefore }, { title: 'ThreadPage' })

const MessagePart = Type.Object(
  { type: Type.String(), text: Type.Optional(Type.String()) },
  { additionalProperties: true, title: 'MessagePart' },
)

const Message = Type.Object(
  {
    id: Type.String(),
    role: Type.Union([Type.Literal('user'), Type.Literal('assistant'), Type.Literal('system')]),
    content: Type.String({ description: 'What its text parts say.' }),
    parts: Type.Array(MessagePart),
    metadata: nullable(Type.Record(Type.String(), Type.Unknown())),
    createdAt: Timestamp,
    branch: Type.Optional(
      Type.String({ description: 'Where the conversation was changed here: the branch that this message is of.' }),
    ),
    branches: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Where the conversation was changed here: all branches that differ from here on, oldest first.',
      }),
    ),
  },
  { title: 'Message' },
)

const MessagePage = Type.Object({ messages: Type.Array(Message), nextBefore: NextBefore }, { title: 'MessagePage' })

const ThreadUsage = Type.Object(
  {
    inputTokens: nullable(Type.Integer()),
    outputTokens: nullable(Type.Integer()),
    totalTokens: nullable(Type.Integer()),
    totalCostUsd: nullable(Type.Number()),
    durationMs: nullable(Type.Integer()),
  },
  { title: 'ThreadUsage' },
)

const WaitingMessage = Type.Object(
  {
    id: Type.String(),
    parts: Type.Array(MessagePart),
    status: Type.Union([Type.Literal('queued'), Type.Literal('steering')], {
      description: '`steering`: the active run may take it.',
    }),
    createdAt: Timestamp,
  },
  { title: 'WaitingMessage' },
)

const Queue = Type.Object(
  {
    queue: Type.Array(WaitingMessage, { description: 'In the order in which it runs.' }),
    isStopped: Type.Boolean({ description: 'A turn did not complete: the queue waits until it is resumed.' }),
  },
  { title: 'Queue' },
)

const Enqueued = Type.Object(
  {
    sandboxId: Type.String(),
    threadId: Type.String(),
    status: Type.Union([Type.Literal('queued'), Type.Literal('steering'), Type.Literal('running')], {
      description: '`running`: the thread has taken the message before.',
    }),
    messageId: Type.String(),
  },
  { title: 'Enqueued' },
)

const Thread = Type.Object(
  {
    ...summary,
    messages: Type.Array(Message),
    queue: Type.Optional(
      Type.Array(WaitingMessage, { description: 'What waits for its turn; absent when nothing does.' }),
    ),
    usage: ThreadUsage,
    error: nullable(Type.String()),
    completedAt: nullable(Timestamp),
    nextBefore: Type.Optional(
      nullable(Type.String({ description: 'Of a page: the next one is asked for with `before` set to this.' })),
    ),
  },
  { title: 'Thread' },
)

const Branch = Type.Object(
  {
    id: Type.String(),
    isActive: Type.Boolean({ description: 'The thread shows it.' }),
    parentId: nullable(
      Type.String({ description: 'The branch whose beginning it shares; null for the one that is shown.' }),
    ),
    afterMessageId: nullable(
      Type.String({ description: 'The last message that it shares; null when it shares none, or is shown.' }),
    ),
    firstMessageId: nullable(
      Type.String({ description: 'The first message that it does not share; null when it is shown.' }),
    ),
  },
  { title: 'Branch' },
)

const BackgroundRun = Type.Object(
  {
    sandboxId: Type.String(),
    threadId: Type.String(),
    status: Type.Union([Type.Literal('running'), Type.Literal('waiting')]),
  },
  { title: 'BackgroundRun' },
)

const Cancellation = Type.Object(
  {
    status: Type.Union([Type.Literal('cancelled'), Type.Literal('idle')]),
    runs: Type.Array(
      Type.Object({
        runId: Type.String(),
        threadId: Type.String(),
        chunks: Type.Integer(),
        durationMs: Type.Integer(),
      }),
    ),
  },
  { title: 'Cancellation' },
)

const stream = {
  description: "The reply as a stream of the AI SDK's UI messages.",
  content: { [EVENT_STREAM]: Events },
  headers: {
    'x-sandbox-id': 'The sandbox of the conversation.',
    'x-thread-id': 'The thread of the conversation.',
    'x-run-id': 'The run that replies.',
  },
}

export const threadOperations: Operations = {
  'GET /v1/threads': {
    id: 'findThreads',
    summary: 'Finds threads of all sandboxes, newest first',
    description:
      'All that is given must hold. `q` finds what was said: each word in one message, the last as a beginning.',
    tag: 'Threads',
    answers: { 200: answer(ThreadPage) },
  },
  'GET /v1/sandboxes/:sandboxId/threads': {
    id: 'listThreads',
    summary: 'Lists the threads of a sandbox, newest first',
    description: 'All of them, or with `limit` a page; `before` is the id of the last one of the page before.',
    tag: 'Threads',
    answers: { 200: answer(Type.Array(ThreadSummary)) },
  },
  'POST /v1/sandboxes/:sandboxId/threads': {
    id: 'createThread',
    summary: 'Creates a thread',
    tag: 'Threads',
    answers: { 201: answer(ThreadSummary) },
  },
  'GET /v1/sandboxes/:sandboxId/threads/:threadId': {
    id: 'getThread',
    summary: 'Gives a thread with its messages',
    description:
      'All of them, or with `limit` the newest, or those before the message `before`; then `nextBefore` goes on. With `branch` those of a branch.',
    tag: 'Threads',
    answers: { 200: answer(Thread) },
    errors: ['branch_not_found'],
  },
  'PATCH /v1/sandboxes/:sandboxId/threads/:threadId': {
    id: 'changeThread',
    summary: 'Renames a thread, or changes which branch it shows',
    tag: 'Threads',
    answers: { 200: answer(ThreadSummary) },
    errors: ['branch_not_found', 'conflict', 'run_active'],
  },
  'GET /v1/sandboxes/:sandboxId/threads/:threadId/branches': {
    id: 'listBranches',
    summary: 'Lists the branches of a thread, oldest first',
    description: 'None, until an edit or a new reply has cut something off. All of them are one page.',
    tag: 'Threads',
    answers: { 200: answer(Type.Object({ branches: Type.Array(Branch), nextBefore: Type.Null() })) },
  },
  'GET /v1/sandboxes/:sandboxId/threads/:threadId/messages': {
    id: 'listMessages',
    summary: 'Lists the newest messages of a thread, oldest first',
    description: 'With `before` those before that message.',
    tag: 'Threads',
    answers: { 200: answer(MessagePage) },
    errors: ['branch_not_found'],
  },
  'POST /v1/sandboxes/:sandboxId/threads/:threadId/fork': {
    id: 'forkThread',
    summary: 'Copies a conversation up to a message into a new thread of the sandbox',
    tag: 'Threads',
    answers: { 201: answer(ThreadSummary) },
  },
  'DELETE /v1/sandboxes/:sandboxId/threads/:threadId': {
    id: 'deleteThread',
    summary: 'Cancels what runs in a thread, and deletes it',
    tag: 'Threads',
    answers: { 204: noContent },
  },
  'GET /v1/sandboxes/:sandboxId/threads/:threadId/queue': {
    id: 'listQueue',
    summary: 'Lists the messages that wait for their turn in a thread',
    tag: 'Threads',
    answers: { 200: answer(Queue) },
  },
  'POST /v1/sandboxes/:sandboxId/threads/:threadId/queue/resume': {
    id: 'resumeQueue',
    summary: 'Lets a stopped queue go on',
    description: 'A turn that failed, was cancelled or was interrupted stops the queue of its thread.',
    tag: 'Threads',
    answers: { 200: answer(Queue) },
  },
  'DELETE /v1/sandboxes/:sandboxId/threads/:threadId/queue/:messageId': {
    id: 'takeBackMessage',
    summary: 'Takes a message back that waits',
    tag: 'Threads',
    answers: { 204: noContent },
    errors: ['message_not_found', 'conflict'],
  },
  'POST /v1/chat/:slug': {
    id: 'chat',
    summary: 'Sends messages to an agent and streams its reply',
    tag: 'Chat',
    answers: {
      200: stream,
      202: answer(
        Type.Union([BackgroundRun, Enqueued]),
        'It runs in the background (`"mode":"background"`), or waits: for the thread (`whenBusy`), or for the answers to other calls (`waiting`).',
      ),
    },
    errors: [
      'sandbox_not_found',
      'thread_not_found',
      'run_active',
      'queue_full',
      'budget_exceeded',
      'setup_failed',
      'sandbox_unavailable',
    ],
  },
  'GET /v1/chat/:slug/:sandboxId/stream': {
    id: 'resumeStream',
    summary: 'Resumes the active reply of a sandbox',
    description: 'From its beginning, or after the chunk that `Last-Event-ID` names.',
    tag: 'Chat',
    answers: { 200: stream, 204: { description: 'Nothing is active.' } },
    errors: ['thread_not_found'],
  },
  'DELETE /v1/chat/:slug/:sandboxId/stream': {
    id: 'cancelStream',
    summary: 'Cancels the active replies of a sandbox',
    tag: 'Chat',
    description: 'Messages that wait stay, and wait until the queue is resumed; with `queue=drop` they go.',
    answers: { 200: answer(Cancellation, 'The engines have ended.') },
    errors: ['thread_not_found'],
  },
}
