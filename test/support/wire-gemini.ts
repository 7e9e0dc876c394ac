import { type ModelRequest, type ModelTurn, pieces, said, textOf, type WireEvent } from './model-turns.ts'

/** Gemini's own API, as its command-line program speaks it: the model and whether it streams are in the path. */
export const geminiPath = /^\/v1beta\/models\/[\w.-]+:(generateContent|streamGenerateContent)$/

export function readGemini(headers: Headers, body: any): ModelRequest {
  const results = (content: any): any[] => (content?.parts ?? []).filter((part: any) => part.functionResponse)
  const user = body.contents.findLast((content: any) => content.role === 'user' && results(content).length === 0)
  return {
    wire: 'gemini',
    headers,
    body,
    lastText: textOf(user?.parts),
    results: results(body.contents.at(-1)).map(part => JSON.stringify(part.functionResponse.response)),
    tools: (body.tools ?? []).flatMap((tool: any) => (tool.functionDeclarations ?? []).map(({ name }: any) => name)),
  }
}

export const geminiError = (status: number, message: string) => ({
  error: { code: status, message, status: status === 429 ? 'RESOURCE_EXHAUSTED' : 'INTERNAL' },
})

const usageMetadata = {
  promptTokenCount: 150,
  candidatesTokenCount: 25,
  totalTokenCount: 175,
  cachedContentTokenCount: 30,
}

const chunk = (parts: object[], more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  modelVersion: 'fake',
})

export const geminiJson = (_: any, text: string) => ({ ...chunk([{ text }], { finishReason: 'STOP' }), usageMetadata })

export async function* geminiEvents(_: ModelRequest, turn: ModelTurn): AsyncGenerator<WireEvent> {
  if ('brokenStream' in turn) return yield { data: geminiError(500, turn.message ?? 'overloaded now') }
  if ('text' in turn && turn.text !== undefined) {
    for await (const text of 'calls' in turn ? pieces(turn.text) : said(turn)) yield { data: chunk([{ text }]) }
  }
  if ('ending' in turn && turn.ending === 'error') return yield { data: geminiError(500, 'overloaded now') }
  const calls = 'calls' in turn ? turn.calls : []
  const parts = calls.map(({ name, input = {} }) => ({ functionCall: { name, args: input } }))
  if (parts.length > 0) yield { data: chunk(parts) }
  yield { data: { ...chunk([], { finishReason: 'STOP' }), usageMetadata } }
}
