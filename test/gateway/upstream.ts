/** A fake model provider that speaks the four wires, and keeps what it was sent. */

export interface Seen {
  method: string
  path: string
  headers: Headers
  body: any
  /** Resolves when the caller has gone before the end. */
  gone: Promise<void>
}

export interface Upstream {
  url: string
  seen: Seen[]
  stop(): Promise<void>
}

type Event = { event?: string; data: unknown }
type Wire = 'anthropic' | 'openai-chat' | 'openai-responses' | 'gemini'

/** What every whole answer tells: 150 tokens of input, 30 of them from the cache, and 25 of output. */
export const told = { inputTokens: 150, outputTokens: 25, cacheReadTokens: 30, cacheWriteTokens: 0 }
export const WORDS = ['Hello ', 'from ', 'the ', 'fake ', 'model.']

/**
 * A word in the request's text makes it behave otherwise: HANG never answers, STALL stops after three words, CUT ends
 * there, MIDERR fails there, NOUSAGE tells no usage, ERR529 answers with that status, LEAK repeats the key in an error.
 */
export function startUpstream(): Upstream {
  const seen: Seen[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const text = await request.text()
      const gone = new Promise<void>(resolve => request.signal.addEventListener('abort', () => resolve()))
      const body = text ? JSON.parse(text) : undefined
      seen.push({ method: request.method, path: pathname + search, headers: request.headers, body, gone })
      if (pathname.endsWith('/models')) return Response.json({ object: 'list', data: [] })
      if (pathname.endsWith('/count_tokens')) return Response.json({ input_tokens: 100 })
      const wire = wireOf(pathname)
      const [, status] = /ERR(\d{3})/.exec(text) ?? []
      const init = { status: Number(status), headers: { 'retry-after-ms': '50', 'set-cookie': 'a=b' } }
      if (status) return Response.json({ type: 'error', error: { type: 'x', message: `fake ${status}` } }, init)
      if (/LEAK/.test(text)) return new Response(`no such key: ${request.headers.get('x-api-key')}`, { status: 401 })
      if (/MOVED/.test(text)) return Response.redirect('http://127.0.0.1:1/elsewhere', 302)
      if (/HANG/.test(text)) await gone
      const isStream = wire === 'gemini' ? pathname.includes('stream') : body.stream === true
      const usage = !/NOUSAGE/.test(text) && (wire !== 'openai-chat' || !isStream || body.stream_options?.include_usage)
      if (!isStream) return Response.json(whole[wire](body.model, usage))
      return new Response(sse(events(wire, body.model, text, usage), gone), {
        headers: { 'content-type': 'text/event-stream', 'request-id': 'req_1', 'openai-organization': 'org-secret' },
      })
    },
  })
  return { url: server.url.origin, seen, stop: () => server.stop(true) }
}

const wireOf = (path: string): Wire =>
  path.endsWith('/messages')
    ? 'anthropic'
    : path.endsWith('/chat/completions')
      ? 'openai-chat'
      : path.endsWith('/responses')
        ? 'openai-responses'
        : 'gemini'

const anthropicUsage = { input_tokens: 120, cache_creation_input_tokens: 0, cache_read_input_tokens: 30 }
const chatUsage = { prompt_tokens: 150, completion_tokens: 25, prompt_tokens_details: { cached_tokens: 30 } }
const responsesUsage = { input_tokens: 150, input_tokens_details: { cached_tokens: 30 }, output_tokens: 25 }
const geminiUsage = {
  usageMetadata: {
    promptTokenCount: 150,
    cachedContentTokenCount: 30,
    candidatesTokenCount: 20,
    thoughtsTokenCount: 5,
  },
}

const whole: Record<Wire, (model: string, usage: boolean) => object> = {
  anthropic: model => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content: [{ type: 'text', text: WORDS.join('') }],
    stop_reason: 'end_turn',
    usage: { ...anthropicUsage, output_tokens: 25 },
  }),
  'openai-chat': (model, usage) => ({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model,
    choices: [{ index: 0, message: { role: 'assistant', content: WORDS.join('') }, finish_reason: 'stop' }],
    ...(usage && { usage: chatUsage }),
  }),
  'openai-responses': model => response(model, 'completed', responsesUsage),
  gemini: () => ({
    candidates: [{ content: { role: 'model', parts: [{ text: WORDS.join('') }] }, finishReason: 'STOP' }],
    ...geminiUsage,
  }),
}

const message = { id: 'msg_1', type: 'message', status: 'completed', role: 'assistant' }
const response = (model: string, status: string, usage: object | null = null) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status,
  model,
  output:
    status === 'completed'
      ? [{ ...message, content: [{ type: 'output_text', text: WORDS.join(''), annotations: [] }] }]
      : [],
  usage,
  error: null,
  incomplete_details: null,
  parallel_tool_calls: true,
  tools: [],
  tool_choice: 'auto',
  metadata: {},
})

class Stall extends Error {}

/** The parts of each wire's stream: before, a word, a failure, after. */
function* events(wire: Wire, model: string, text: string, usage: boolean): Generator<Event> {
  const parts = shapes[wire](model, usage)
  yield* parts.before
  for (const [index, word] of WORDS.entries()) {
    if (index === 3 && /CUT/.test(text)) return
    if (index === 3 && /STALL/.test(text)) throw new Stall()
    if (index === 3 && /MIDERR/.test(text)) return yield parts.failure
    yield parts.word(word)
  }
  yield* parts.after
}

const typed = (type: string, fields: object): Event => ({ event: type, data: { type, ...fields } })

const shapes: Record<
  Wire,
  (model: string, usage: boolean) => { before: Event[]; word(text: string): Event; failure: Event; after: Event[] }
> = {
  anthropic: model => ({
    before: [
      typed('message_start', {
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model,
          content: [],
          stop_reason: null,
          usage: { ...anthropicUsage, output_tokens: 1 },
        },
      }),
      typed('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ],
    word: text => typed('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    failure: typed('error', { error: { type: 'overloaded_error', message: 'fake' } }),
    after: [
      typed('content_block_stop', { index: 0 }),
      typed('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 25 } }),
      typed('message_stop', {}),
    ],
  }),
  'openai-chat': (model, usage) => {
    const chunk = (delta: object, finish_reason: string | null = null): Event => ({
      data: {
        id: 'c1',
        object: 'chat.completion.chunk',
        created: 1,
        model,
        choices: [{ index: 0, delta, finish_reason }],
      },
    })
    return {
      before: [chunk({ role: 'assistant', content: '' })],
      word: content => chunk({ content }),
      failure: { data: { error: { message: 'fake', type: 'server_error' } } },
      after: [
        chunk({}, 'stop'),
        ...(usage
          ? [{ data: { id: 'c1', object: 'chat.completion.chunk', created: 1, model, choices: [], usage: chatUsage } }]
          : []),
        { data: '[DONE]' },
      ],
    }
  },
  'openai-responses': model => {
    const item = { item_id: 'msg_1', output_index: 0, content_index: 0 }
    return {
      before: [
        typed('response.created', { response: response(model, 'in_progress') }),
        typed('response.output_item.added', {
          output_index: 0,
          item: { ...message, status: 'in_progress', content: [] },
        }),
        typed('response.content_part.added', { ...item, part: { type: 'output_text', text: '', annotations: [] } }),
      ],
      word: delta => typed('response.output_text.delta', { ...item, delta, logprobs: [] }),
      failure: typed('error', { code: 'server_error', message: 'fake', param: null }),
      after: [
        typed('response.output_item.done', {
          output_index: 0,
          item: { ...message, content: [{ type: 'output_text', text: WORDS.join(''), annotations: [] }] },
        }),
        typed('response.completed', { response: response(model, 'completed', responsesUsage) }),
      ],
    }
  },
  gemini: () => ({
    before: [],
    word: text => ({ data: { candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }] } }),
    failure: { data: { error: { code: 503, message: 'fake', status: 'UNAVAILABLE' } } },
    after: [{ data: { candidates: [{ content: { parts: [] }, finishReason: 'STOP', index: 0 }], ...geminiUsage } }],
  }),
}

function sse(events: Generator<Event>, gone: Promise<void>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = events.next()
        if (done) return controller.close()
        const data = typeof value.data === 'string' ? value.data : JSON.stringify(value.data)
        controller.enqueue(encoder.encode(`${value.event ? `event: ${value.event}\n` : ''}data: ${data}\n\n`))
      } catch (error) {
        if (!(error instanceof Stall)) throw error
        await gone
      }
    },
  })
}
