import { type JsonObject, objectOf, objectsOf } from '../read/json.ts'
import type { CallWire } from './routes.ts'

/** Tokens of a call. */
export interface TokenUsage {
  /** Those of the cache are among them. */
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
}

/** What one event of a stream, or one whole answer, tells. */
export interface Sight {
  /** What is known better now. */
  usage?: Partial<TokenUsage>
  /** Characters that the model said in it. */
  characters: number
  /** The call came to its end, well or not. */
  end?: 'completed' | 'failed'
}

/** How to read each wire. What an upstream sends is not trusted: all that is no sane number counts as absent. */
export const readers: Readonly<Record<CallWire, (event: JsonObject) => Sight>> = {
  anthropic(event) {
    const usage = anthropicUsage(objectOf(event.usage) ?? objectOf(objectOf(event.message)?.usage))
    const delta = objectOf(event.delta)
    const characters = lengthOf(delta?.text) + lengthOf(delta?.thinking) + lengthOf(delta?.partial_json)
    return {
      usage,
      characters,
      ...endOf(event.type === 'error', event.type === 'message_stop' || event.type === 'message'),
    }
  },
  'openai-chat'(event) {
    const usage = objectOf(event.usage)
    const choices = objectsOf(event.choices)
    let characters = 0
    for (const choice of choices) {
      const delta = objectOf(choice.delta)
      characters += lengthOf(delta?.content) + lengthOf(delta?.reasoning_content) + lengthOf(delta?.reasoning)
      for (const call of objectsOf(delta?.tool_calls)) characters += lengthOf(objectOf(call.function)?.arguments)
    }
    const finished = choices.some(choice => typeof choice.finish_reason === 'string')
    return {
      usage: known({
        inputTokens: count(usage?.prompt_tokens),
        outputTokens: count(usage?.completion_tokens),
        cacheReadTokens: count(objectOf(usage?.prompt_tokens_details)?.cached_tokens),
      }),
      characters,
      ...endOf(Boolean(event.error), finished),
    }
  },
  'openai-responses'(event) {
    const response = event.object === 'response' ? event : objectOf(event.response)
    const usage = objectOf(response?.usage)
    const status = response?.status
    return {
      usage: known({
        inputTokens: count(usage?.input_tokens),
        outputTokens: count(usage?.output_tokens),
        cacheReadTokens: count(objectOf(usage?.input_tokens_details)?.cached_tokens),
      }),
      characters: lengthOf(event.delta),
      ...endOf(event.type === 'error' || status === 'failed', status === 'completed' || status === 'incomplete'),
    }
  },
  gemini(event) {
    const usage = objectOf(event.usageMetadata)
    const candidates = objectsOf(event.candidates)
    let characters = 0
    for (const candidate of candidates) {
      for (const part of objectsOf(objectOf(candidate.content)?.parts)) characters += lengthOf(part.text)
    }
    // To a prompt that it refuses it gives no candidate.
    const isRefused = typeof objectOf(event.promptFeedback)?.blockReason === 'string'
    const finished = isRefused || candidates.some(candidate => typeof candidate.finishReason === 'string')
    return {
      usage: known({
        inputTokens: sum(usage?.promptTokenCount, usage?.toolUsePromptTokenCount),
        outputTokens: sum(usage?.candidatesTokenCount, usage?.thoughtsTokenCount),
        cacheReadTokens: count(usage?.cachedContentTokenCount),
      }),
      characters,
      ...endOf(Boolean(event.error), finished),
    }
  },
}

/** Anthropic counts what the cache has beside the input. A stream tells the input first and, maybe, again at its end. */
function anthropicUsage(usage: JsonObject | undefined): Partial<TokenUsage> {
  const input = count(usage?.input_tokens)
  const cacheReadTokens = count(usage?.cache_read_input_tokens)
  const cacheWriteTokens = count(usage?.cache_creation_input_tokens)
  const all = input === undefined ? undefined : input + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0)
  return known({ inputTokens: all, outputTokens: count(usage?.output_tokens), cacheReadTokens, cacheWriteTokens })
}

const endOf = (failed: boolean, completed: boolean): Pick<Sight, 'end'> =>
  failed ? { end: 'failed' } : completed ? { end: 'completed' } : {}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value < 1e9 ? Math.round(value) : undefined

const sum = (first: unknown, second: unknown): number | undefined => {
  const counted = count(first)
  return counted === undefined ? undefined : counted + (count(second) ?? 0)
}

const known = (usage: { [Field in keyof TokenUsage]?: number | undefined }): Partial<TokenUsage> =>
  Object.fromEntries(Object.entries(usage).filter(([, tokens]) => tokens !== undefined))

const lengthOf = (value: unknown): number => (typeof value === 'string' ? value.length : 0)
