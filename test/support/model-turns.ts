/** What the fake model does with one request. `endsAfter`: the stream has so many events; 2.5 is two and half of a third. */
export type ModelTurn =
  | {
      text: string
      reasoning?: string
      everyMs?: number
      cutAfter?: Promise<void>
      ending?: 'end' | 'error' | 'hang' | 'length' | 'cut'
      endsAfter?: number
    }
  | { calls: ModelCall[]; text?: string; reasoning?: string; endsAfter?: number }
  /** Answers with a status; `headers` may ask for a wait. */
  | { status: number; headers?: Record<string, string>; message?: string }
  /** Takes the request and says nothing. */
  | { silent: true }
  /** A stream whose first event is an error. */
  | { brokenStream: true; message?: string }

export interface ModelCall {
  name: string
  /** On the responses wire, what the name belongs to. */
  namespace?: string
  /** `raw` is sent as it is, JSON or not. */
  input?: object
  raw?: string
  /** The provider's id; a new one unless given. */
  id?: string
}

/** A request as every wire has it. */
export interface ModelRequest {
  wire: Wire | 'gemini'
  headers: Headers
  body: any
  /** Of the newest user message that is more than tool results. */
  lastText: string
  /** The newest tool results, as text. */
  results: string[]
  tools: string[]
}

export type Wire = 'anthropic' | 'openai-responses' | 'openai-chat'

/** One server-sent event. */
export interface WireEvent {
  event?: string
  data: unknown
}

export const argumentsOf = ({ input = {}, raw }: ModelCall): string => raw ?? JSON.stringify(input)
export const newId = (prefix: string): string => prefix + crypto.randomUUID().replaceAll('-', '').slice(0, 20)
/** Some pieces of a text: it never comes at once. */
export const pieces = (text: string, chars = 12): string[] => text.match(new RegExp(`[^]{1,${chars}}`, 'g')) ?? []

export class CutOff extends Error {
  constructor(readonly isClean: boolean) {
    super()
  }
}

export function textOf(content: any): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map(part => part.text ?? (part.content ? textOf(part.content) : (part.output ?? ''))).join(' ')
}

/** Pauses between pieces of text; a hang never ends, a cut breaks the connection, or only ends the stream. */
export async function* said(turn: Extract<ModelTurn, { text: string }>): AsyncGenerator<string> {
  const words = turn.everyMs === undefined ? pieces(turn.text) : (turn.text.match(/\S+\s*/g) ?? [])
  for (const word of words) {
    yield word
    if (turn.everyMs) await Bun.sleep(turn.everyMs)
  }
  if (turn.ending === 'hang') await new Promise(() => {})
  if (turn.cutAfter) {
    await turn.cutAfter
    throw new CutOff(turn.ending === 'cut')
  }
}
