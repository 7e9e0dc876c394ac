import {
  argumentsOf,
  type ModelCall,
  type ModelRequest,
  type ModelTurn,
  newId,
  pieces,
  said,
  textOf,
  type WireEvent,
} from './model-turns.ts'

export function readResponses(headers: Headers, body: any): ModelRequest {
  const items: any[] = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : body.input
  const isOutput = (item: any) => item.type === 'function_call_output'
  const lastAnswer = items.findLastIndex(item => !isOutput(item))
  const asText = (output: any) => (typeof output === 'string' ? output : textOf(output))
  return {
    wire: 'openai-responses',
    headers,
    body,
    lastText: textOf(items.findLast(item => item.role === 'user')?.content),
    results: items.slice(lastAnswer + 1).map(item => asText(item.output)),
    tools: (body.tools ?? []).map((tool: any) => tool.name),
  }
}

const usage = {
  input_tokens: 150,
  input_tokens_details: { cached_tokens: 30 },
  output_tokens: 25,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 175,
}

const response = (id: string, model: string, status: string, output: object[] = [], more: object = {}) => ({
  ...{ id, object: 'response', created_at: 1, status, model, output, usage: status === 'in_progress' ? null : usage },
  ...{ error: null, incomplete_details: null, parallel_tool_calls: true, tools: [], tool_choice: 'auto', metadata: {} },
  ...more,
})

const messageItem = (text: string, status = 'completed') => ({
  id: newId('msg_'),
  type: 'message',
  status,
  role: 'assistant',
  content: status === 'completed' ? [{ type: 'output_text', text, annotations: [] }] : [],
})

export const responsesJson = (body: any, text: string) =>
  response(newId('resp_'), body.model, 'completed', [messageItem(text)])

export async function* responsesEvents({ body }: ModelRequest, turn: ModelTurn): AsyncGenerator<WireEvent> {
  const id = newId('resp_')
  const output: object[] = []
  let sequence_number = 0
  const event = (type: string, data: object): WireEvent => ({
    event: type,
    data: { type, sequence_number: sequence_number++, ...data },
  })
  const broken = (message = 'overloaded now') => event('error', { code: 'server_error', message, param: null })
  if ('brokenStream' in turn) return yield broken(turn.message)
  yield event('response.created', { response: response(id, body.model, 'in_progress') })
  yield event('response.in_progress', { response: response(id, body.model, 'in_progress') })
  if ('reasoning' in turn && turn.reasoning) yield* reasoningEvents(turn.reasoning)
  if ('text' in turn && turn.text !== undefined) yield* textEvents(turn)
  if ('ending' in turn && turn.ending === 'error') return yield broken()
  for (const call of 'calls' in turn ? turn.calls : []) yield* callEvents(call)
  if ('ending' in turn && turn.ending === 'length') {
    const more = { incomplete_details: { reason: 'max_output_tokens' } }
    return yield event('response.incomplete', { response: response(id, body.model, 'incomplete', output, more) })
  }
  yield event('response.completed', { response: response(id, body.model, 'completed', output) })

  async function* textEvents(part: Extract<ModelTurn, { text: string }> | { calls: ModelCall[]; text?: string }) {
    const output_index = output.length
    const item = messageItem(part.text ?? '')
    const at = { item_id: item.id, output_index, content_index: 0 }
    yield event('response.output_item.added', { output_index, item: { ...item, status: 'in_progress', content: [] } })
    yield event('response.content_part.added', { ...at, part: { type: 'output_text', text: '', annotations: [] } })
    for await (const delta of 'calls' in part ? pieces(part.text ?? '') : said(part)) {
      yield event('response.output_text.delta', { ...at, delta, logprobs: [] })
    }
    if ('ending' in part && part.ending === 'error') return
    yield event('response.output_text.done', { ...at, text: part.text })
    yield event('response.content_part.done', { ...at, part: item.content[0] })
    yield event('response.output_item.done', { output_index, item })
    output.push(item)
  }

  function* reasoningEvents(text: string) {
    const output_index = output.length
    const item = {
      id: newId('rs_'),
      type: 'reasoning',
      summary: [{ type: 'summary_text', text }],
      encrypted_content: 'enc',
    }
    const at = { item_id: item.id, output_index, summary_index: 0 }
    yield event('response.output_item.added', { output_index, item: { ...item, summary: [] } })
    yield event('response.reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } })
    for (const delta of pieces(text)) yield event('response.reasoning_summary_text.delta', { ...at, delta })
    yield event('response.reasoning_summary_part.done', { ...at, part: { type: 'summary_text', text } })
    yield event('response.output_item.done', { output_index, item })
    output.push(item)
  }

  function* callEvents(call: ModelCall) {
    const output_index = output.length
    const { name, namespace } = call
    const filled = {
      name,
      ...(namespace && { namespace }),
      call_id: call.id ?? newId('call_'),
      arguments: argumentsOf(call),
    }
    const item = { id: newId('fc_'), type: 'function_call', status: 'completed', ...filled }
    const at = { item_id: item.id, output_index }
    yield event('response.output_item.added', { output_index, item: { ...item, status: 'in_progress', arguments: '' } })
    for (const delta of pieces(item.arguments)) yield event('response.function_call_arguments.delta', { ...at, delta })
    yield event('response.function_call_arguments.done', { ...at, arguments: item.arguments })
    yield event('response.output_item.done', { output_index, item })
    output.push(item)
  }
}
