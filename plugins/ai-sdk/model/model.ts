import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModel, ModelMessage, SystemModelMessage } from 'ai'
import type { ModelAccess } from '../../../src/plugin-api/index.ts'

/** Where a provider does not tell the window of a model. */
const DEFAULT_CONTEXT_TOKENS = 200_000

/** What one answer may take of the window. A model that gives less takes what it gives. */
export const MAX_OUTPUT_TOKENS = 32_000

/** A model, and what is particular to its wire. */
export interface Model {
  wire: ModelAccess['wire']
  languageModel: LanguageModel
  contextTokens: number
  /** Settings of every call. */
  settings: CallSettings
}

type Cached = { anthropic: { cacheControl: { type: 'ephemeral' } } }

interface CallSettings {
  maxOutputTokens?: number
  providerOptions?: { openai: { store: false; reasoningSummary?: 'auto' } }
}

export function openModel({ provider, wire, id, baseUrl, token, fetch, contextTokens }: ModelAccess): Model {
  // It would print to the server's log what it thinks of a request.
  globalThis.AI_SDK_LOG_WARNINGS = false
  const access = { baseURL: baseUrl, apiKey: token, fetch }
  const known = { wire, contextTokens: contextTokens ?? DEFAULT_CONTEXT_TOKENS }
  switch (wire) {
    case 'anthropic':
      // Without a number the SDK gives a model that it does not know 4096.
      return { ...known, languageModel: createAnthropic(access)(id), settings: { maxOutputTokens: MAX_OUTPUT_TOKENS } }
    case 'openai-responses':
      return {
        ...known,
        languageModel: createOpenAI(access).responses(id),
        settings: { providerOptions: { openai: { store: false, reasoningSummary: 'auto' } } },
      }
    case 'openai-chat':
      return {
        ...known,
        languageModel: createOpenAICompatible({ ...access, name: provider, includeUsage: true })(id),
        settings: {},
      }
  }
}

const cached: { providerOptions: Cached } = {
  providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } },
}

/**
 * Marks what the next call will send again. Two marks at the end: the one of the call before is still found when a
 * message or two have come since. Other wires cache by themselves.
 */
export function withCacheMarks({ wire }: Model, messages: readonly ModelMessage[]): ModelMessage[] {
  if (wire !== 'anthropic') return [...messages]
  const firstMarked = messages.length - 2
  return messages.map((message, index) => (index >= firstMarked ? { ...message, ...cached } : message))
}

export const systemMessage = ({ wire }: Model, content: string): SystemModelMessage => ({
  role: 'system',
  content,
  ...(wire === 'anthropic' && cached),
})
