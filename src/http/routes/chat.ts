import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { startChat } from '../../core/chat/chat.ts'
import { cancelStream, findStream, getStream, resumeStream } from '../../core/chat/streams.ts'
import {
  assertClientTools,
  assertRuleList,
  ClientTools,
  RuleList,
  StreamProfile,
} from '../../core/permissions/options.ts'
import type { Runtime } from '../../core/runtime.ts'
import { ApiError } from '../../errors.ts'
import { isObject } from '../../read/json.ts'
import type { Watched } from '../../runs/registry.ts'
import { streamHeaders } from '../../stream/frame.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { getContext, takeFlow } from '../context.ts'
import { wantsEvents } from '../event-answer.ts'
import { feedBody } from '../feed-body.ts'
import { ExternalUserId, Id, Word } from '../schema.ts'

/** A text is bounded by the body alone. */
const Text = Type.String({ maxLength: bounds.bodyBytes })

const Part = Type.Object({ type: Word, text: Type.Optional(Text) }, { additionalProperties: true })

const Message = Type.Object({
  id: Type.Optional(Id),
  role: Type.Union([Type.Literal('user'), Type.Literal('assistant'), Type.Literal('system')]),
  parts: Type.Array(Part, { maxItems: bounds.parts }),
})

const Prompt = Type.String({ maxLength: bounds.systemPrompt })

const SystemPrompt = Type.Union([
  Prompt,
  Type.Object({ type: Type.Literal('preset'), preset: Word, append: Type.Optional(Prompt) }),
])

const Options = Type.Object({
  model: Type.Optional(Type.String({ maxLength: bounds.model })),
  systemPrompt: Type.Optional(SystemPrompt),
  maxTurns: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  maxBudgetUsd: Type.Optional(Type.Number({ minimum: 0 })),
  maxSandboxBudgetUsd: Type.Optional(Type.Number({ minimum: 0 })),
  permissionMode: Type.Optional(Word),
  disallowedTools: Type.Optional(Type.Array(Type.String({ maxLength: bounds.tool }), { maxItems: bounds.tools })),
  allow: Type.Optional(RuleList),
  ask: Type.Optional(RuleList),
  deny: Type.Optional(RuleList),
})

const Chat = Type.Object({
  sandboxId: Type.Optional(Id),
  threadId: Type.Optional(Id),
  id: Type.Optional(
    Type.Union([Id, Type.Null()], {
      description:
        'Your own name for the conversation: with it, the next message goes on in the same sandbox and thread.',
    }),
  ),
  messages: Type.Array(Message, { minItems: 1, maxItems: bounds.messages }),
  name: Type.Optional(Type.String({ maxLength: bounds.name })),
  trigger: Type.Optional(Word),
  messageId: Type.Optional(Type.Union([Id, Type.Null()])),
  mode: Type.Optional(Word),
  whenBusy: Type.Optional(
    Type.Union([Type.Literal('reject'), Type.Literal('queue'), Type.Literal('steer')], {
      description:
        'While the thread has a reply under way: refuse the message (the default), let it wait for its own turn, or give it to the agent while it works.',
    }),
  ),
  externalUserId: Type.Optional(ExternalUserId),
  stream: Type.Optional(StreamProfile),
  tools: Type.Optional(ClientTools),
  options: Type.Optional(Options),
})

const SlugParams = Type.Object({ slug: Type.String() })
const StreamParams = Type.Object({ slug: Type.String(), sandboxId: Type.String() })
const StreamQuery = Type.Object({
  threadId: Type.Optional(Id),
  sandboxId: Type.Optional(Id),
  externalUserId: Type.Optional(ExternalUserId),
})

const CancelQuery = Type.Object({
  ...StreamQuery.properties,
  queue: Type.Optional(
    Type.Union([Type.Literal('keep'), Type.Literal('drop')], {
      description: 'What becomes of the messages that wait: they stay, and wait until the queue is resumed, or go.',
    }),
  ),
})

export const chatRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/chat', normalize: false })
    .post(
      '/:slug',
      async ({ request, params: { slug }, body, status }) => {
        const background = body.mode === 'background'
        const { id, messages, messageId, options = {}, stream, tools, ...rest } = body
        for (const name of ['allow', 'ask', 'deny'] as const) assertRuleList(`options.${name}`, options[name])
        assertClientTools('tools', tools)
        const caller = getCaller(request)
        if (!background && !wantsEvents(request)) getContext(request).share?.use(runtime.limits.open('streams', caller))
        const started = await startChat(
          runtime,
          caller,
          slug,
          {
            ...rest,
            background,
            messages: messages.map(checked),
            options: { ...overrides(options), ...(stream && { stream }), ...(tools && { clientTools: tools }) },
            ...(typeof id === 'string' && { id }),
            ...(typeof messageId === 'string' && { messageId }),
          },
          request.signal,
        )
        if (!('run' in started)) return status(202, started)
        if (started.watched) return sse(request, started.watched)
        const { sandboxId, threadId } = started.run
        return status(202, { sandboxId, threadId, status: 'running' })
      },
      { params: SlugParams, ...json(Chat, assertMessages) },
    )
    .get(
      '/:slug/:sandboxId/stream',
      ({ request, params: { slug, sandboxId: name }, query }) => {
        const stream = findStream(runtime, getCaller(request), slug, { name, ...query })
        const watched = stream && resumeStream(runtime, stream, request.headers.get('last-event-id'))
        return watched ? sse(request, watched) : new Response(null, { status: 204 })
      },
      { params: StreamParams, query: StreamQuery },
    )
    .delete(
      '/:slug/:sandboxId/stream',
      async ({ request, params: { slug, sandboxId: name }, query: { queue = 'keep', ...query } }) => {
        const stream = getStream(runtime, getCaller(request), slug, { name, ...query })
        const { runs, isCancelled } = stream
          ? await cancelStream(runtime, stream, queue)
          : { runs: [], isCancelled: false }
        return { status: isCancelled ? 'cancelled' : 'idle', runs }
      },
      { params: StreamParams, query: CancelQuery },
    )

const FORM = '"messages":[{"role":"user","parts":[{"type":"text","text":"Hello"}]}]'

/** Throws invalid_request that shows the right form, for bodies in the form of another API. */
function assertMessages(body: unknown): void {
  if (!isObject(body)) return
  const { messages } = body
  const wrong = (field: string, what: string) => {
    throw new ApiError('invalid_request', `${field}: ${what}; send ${FORM}`, { field })
  }
  if (messages === undefined) wrong('messages', 'required')
  const isOther = (each: unknown) => isObject(each) && each.parts === undefined && each.content !== undefined
  const index = Array.isArray(messages) ? messages.findIndex(isOther) : -1
  if (index >= 0) wrong(`messages.${index}.content`, 'a message has parts in place of content')
}

const sse = (request: Request, watched: Watched) =>
  new Response(feedBody(watched.feed, takeFlow(request)), { headers: streamHeaders(watched) })

const checked = ({ id, role, parts }: Static<typeof Message>) => {
  if (parts.some(({ type, text }) => type === 'text' && text === undefined)) {
    throw new ApiError('invalid_request', 'messages.parts.text: required', { field: 'messages.parts.text' })
  }
  return { id, role, parts }
}

function overrides({ systemPrompt, ...options }: Static<typeof Options>) {
  const prompt = typeof systemPrompt === 'object' ? systemPrompt.append : systemPrompt
  return { ...options, ...(prompt !== undefined && { systemPrompt: prompt }) }
}
