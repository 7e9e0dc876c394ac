import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModel, ModelMessage, SystemModelMessage } from 'ai'
import type { ModelAccess } from '../../../src/plugin-api/index.ts'

/** The context window of a model for which the provider names no size. */
const DEFAULT_CONTEXT_TOKENS = 200_000

/** The most that one answer may take of the window. */
export const MAX_OUTPUT_TOKENS = 32_000

/** A model, and the settings that its API needs. */
export interface Model {
  wire: ModelAccess['wire']
  languageModel: LanguageModel
  contextTokens: number
  /** Settings for every call. */
  settings: CallSettings
}

type Cached = { anthropic: { cacheControl: { type: 'ephemeral' } } }

interface CallSettings {
  maxOutputTokens?: number
  providerOptions?: { openai: { store: false; reasoningSummary?: 'auto' } }
}

export function openModel({ provider, wire, id, baseUrl, token, fetch, contextTokens }: ModelAccess): Model {
  // The SDK would print warnings about requests to the server's log.
  globalThis.AI_SDK_LOG_WARNINGS = false
  const access = { baseURL: baseUrl, apiKey: token, fetch }
  const known = { wire, contextTokens: contextTokens ?? DEFAULT_CONTEXT_TOKENS }
  switch (wire) {
    case 'anthropic':
      // Without a number the SDK allows a model that it does not know 4096 tokens.
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
 * Marks the last two messages for Anthropic's prompt cache. Two, so that the mark of the previous call is still found when a
 * message or two were added since. Other APIs cache without marks.
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
