import {
  argumentsOf,
  type ModelRequest,
  type ModelTurn,
  newId,
  pieces,
  said,
  textOf,
  type WireEvent,
} from './model-turns.ts'

export function readAnthropic(headers: Headers, body: any): ModelRequest {
  const isResults = (message: any) =>
    Array.isArray(message?.content) && message.content.some((part: any) => part.type === 'tool_result')
  const last = body.messages.at(-1)
  const user = body.messages.findLast((message: any) => message.role === 'user' && !isResults(message))
  return {
    wire: 'anthropic',
    headers,
    body,
    lastText: textOf(user?.content),
    results: isResults(last)
      ? last.content.filter((part: any) => part.type === 'tool_result').map((part: any) => textOf(part.content))
      : [],
    tools: (body.tools ?? []).map((tool: any) => tool.name),
  }
}

export const anthropicError = (status: number, message: string) => ({
  type: 'error',
  error: { type: status === 429 ? 'rate_limit_error' : 'api_error', message },
})

export function anthropicJson(body: any, text: string) {
  const usage = { input_tokens: 120, output_tokens: 25 }
  const content = [{ type: 'text', text }]
  return {
    id: newId('msg_'),
    type: 'message',
    role: 'assistant',
    model: body.model,
    content,
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage,
  }
}

export async function* anthropicEvents({ body }: ModelRequest, turn: ModelTurn): AsyncGenerator<WireEvent> {
  const event = (type: string, data: object): WireEvent => ({ event: type, data: { type, ...data } })
  const overloaded = {
    event: 'error',
    data: {
      type: 'error',
      error: { type: 'overloaded_error', message: ('message' in turn && turn.message) || 'overloaded now' },
    },
  }
  if ('brokenStream' in turn) return yield overloaded
  const usage = { input_tokens: 120, cache_creation_input_tokens: 0, cache_read_input_tokens: 30, output_tokens: 1 }
  const message = {
    id: newId('msg_'),
    type: 'message',
    role: 'assistant',
    model: body.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  }
  yield event('message_start', { message })
  yield event('ping', {})
  let index = 0
  const block = async function* (content_block: object, deltas: Iterable<object> | AsyncIterable<object>) {
    yield event('content_block_start', { index, content_block })
    for await (const delta of deltas) yield event('content_block_delta', { index, delta })
    yield event('content_block_stop', { index })
    index += 1
  }
  if ('reasoning' in turn && turn.reasoning) {
    const deltas = pieces(turn.reasoning).map(thinking => ({ type: 'thinking_delta', thinking }))
    yield* block({ type: 'thinking', thinking: '' }, [...deltas, { type: 'signature_delta', signature: 'sig' }])
  }
  if ('text' in turn && turn.text !== undefined) {
    const texts = 'calls' in turn ? pieces(turn.text) : said(turn)
    yield* block({ type: 'text', text: '' }, textDeltas(texts))
  }
  if ('ending' in turn && turn.ending === 'error') return yield overloaded
  const calls = 'calls' in turn ? turn.calls : []
  for (const call of calls) {
    const deltas = pieces(argumentsOf(call)).map(partial_json => ({ type: 'input_json_delta', partial_json }))
    yield* block({ type: 'tool_use', id: call.id ?? newId('toolu_'), name: call.name, input: {} }, deltas)
  }
  const reason = 'ending' in turn && turn.ending === 'length' ? 'max_tokens' : 'end_turn'
  const stop_reason = calls.length > 0 ? 'tool_use' : reason
  yield event('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 25 } })
  yield event('message_stop', {})
}

async function* textDeltas(texts: Iterable<string> | AsyncIterable<string>) {
  for await (const text of texts) yield { type: 'text_delta', text }
}
