import { type JsonObject, objectOf, objectsOf } from '../read/json.ts'
import type { CallWire } from './routes.ts'

/** Tokens of a call. */
export interface TokenUsage {
  /** Those read from and written to the cache are included. */
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
}

/** What one event of a stream, or one whole answer, reports. */
export interface Observation {
  /** The counts that this event reports. */
  usage?: Partial<TokenUsage>
  /** Characters of the model's text in this event. */
  characters: number
  /** Set when the call has ended. */
  end?: 'completed' | 'failed'
}

/** How to read each wire. The provider is not trusted: a count that is not a sane number is ignored. */
export const usageReaders: Readonly<Record<CallWire, (event: JsonObject) => Observation>> = {
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
    // A refused prompt has no candidate.
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

/** Anthropic does not include the cache in its input tokens. A stream reports the input first, and may repeat it at its end. */
function anthropicUsage(usage: JsonObject | undefined): Partial<TokenUsage> {
  const input = count(usage?.input_tokens)
  const cacheReadTokens = count(usage?.cache_read_input_tokens)
  const cacheWriteTokens = count(usage?.cache_creation_input_tokens)
  const all = input === undefined ? undefined : input + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0)
  return known({ inputTokens: all, outputTokens: count(usage?.output_tokens), cacheReadTokens, cacheWriteTokens })
}

const endOf = (failed: boolean, completed: boolean): Pick<Observation, 'end'> =>
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
