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

export function readChat(headers: Headers, body: any): ModelRequest {
  const lastAnswer = body.messages.findLastIndex((message: any) => message.role === 'assistant')
  const newest = body.messages.slice(lastAnswer + 1)
  return {
    wire: 'openai-chat',
    headers,
    body,
    lastText: textOf(body.messages.findLast((message: any) => message.role === 'user')?.content),
    results: newest.filter((message: any) => message.role === 'tool').map((message: any) => textOf(message.content)),
    tools: (body.tools ?? []).map((tool: any) => tool.function.name),
  }
}

const errorType = (status: number) =>
  status === 429 ? 'rate_limit_exceeded' : status < 500 ? 'invalid_request_error' : 'server_error'

export const openaiError = (status: number, message: string) => ({
  error: { message, type: errorType(status), code: null },
})

const usage = {
  prompt_tokens: 150,
  completion_tokens: 25,
  total_tokens: 175,
  prompt_tokens_details: { cached_tokens: 30 },
}

export const chatJson = (body: any, text: string) => ({
  id: newId('chatcmpl-'),
  object: 'chat.completion',
  created: 1,
  model: body.model,
  choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
  usage,
})

export async function* chatEvents({ body }: ModelRequest, turn: ModelTurn): AsyncGenerator<WireEvent> {
  const common = { id: newId('chatcmpl-'), object: 'chat.completion.chunk', created: 1, model: body.model }
  const chunk = (delta: object, finish_reason: string | null = null): WireEvent => ({
    data: { ...common, choices: [{ index: 0, delta, finish_reason }] },
  })
  if ('brokenStream' in turn) return yield { data: openaiError(500, turn.message ?? 'overloaded now') }
  yield chunk({ role: 'assistant', content: '' })
  if ('reasoning' in turn && turn.reasoning) {
    for (const piece of pieces(turn.reasoning)) yield chunk({ reasoning_content: piece })
  }
  if ('text' in turn && turn.text !== undefined) {
    for await (const content of 'calls' in turn ? pieces(turn.text) : said(turn)) yield chunk({ content })
  }
  if ('ending' in turn && turn.ending === 'error') return yield { data: openaiError(500, 'overloaded now') }
  const calls = 'calls' in turn ? turn.calls : []
  for (const [index, call] of calls.entries()) {
    const begun = { index, id: call.id ?? newId('call_'), type: 'function' }
    yield chunk({ tool_calls: [{ ...begun, function: { name: call.name, arguments: '' } }] })
    for (const piece of pieces(argumentsOf(call))) {
      yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] })
    }
  }
  const reason = 'ending' in turn && turn.ending === 'length' ? 'length' : 'stop'
  yield chunk({}, calls.length > 0 ? 'tool_calls' : reason)
  if (body.stream_options?.include_usage) yield { data: { ...common, choices: [], usage } }
  yield { data: '[DONE]' }
}
