import { roundUsd } from '../db/usd.ts'
import type { Provider } from './providers.ts'
import type { PriceTable } from './settings.ts'
import type { TokenUsage } from './usage-readers.ts'

export interface Prices {
  /** What a call costs, in USD to the billionth. Zero for a model without a known price, which is logged once. */
  costUsd(provider: Provider, modelId: string, usage: TokenUsage): number
  /** The model's context window in tokens; undefined when it is not known. */
  contextTokens(provider: Provider, modelId: string): number | undefined
}

/** Loaded with the first call that needs it: the list takes as long to read as the rest of the server to start. */
const priceList = () => require('@pydantic/genai-prices') as typeof import('@pydantic/genai-prices')

/** The built-in price list, with the operator's own prices before it. Nothing is fetched. */
export function createPrices(overrides: PriceTable, log: (line: string) => void): Prices {
  const unknown = new Set<string>()
  // A model may be called `constructor`.
  const own = new Map(Object.entries(overrides))

  function listed(provider: Provider, modelId: string, usage: Readonly<Record<string, number>>) {
    const { priceList: providerId } = provider
    return providerId === undefined ? null : priceList().calcPrice(usage, modelId, { providerId })
  }

  return {
    costUsd(provider, modelId, usage) {
      const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage
      const name = `${provider.name}/${modelId}`
      const price = own.get(name) ?? own.get(modelId)
      if (price) {
        const { input, output, cacheRead = input, cacheWrite = input } = price
        const uncached = inputTokens - cacheReadTokens - cacheWriteTokens
        const total =
          uncached * input + cacheReadTokens * cacheRead + cacheWriteTokens * cacheWrite + outputTokens * output
        return roundUsd(total / 1e6)
      }
      const found = listed(provider, modelId, {
        input_tokens: inputTokens,
        output_tokens: outputTokens,
        cache_read_tokens: cacheReadTokens,
        cache_write_tokens: cacheWriteTokens,
      })
      if (found) return roundUsd(found.total_price)
      if (!unknown.has(name)) log(`no price is known for ${name}: its calls count as 0 USD; set one in "prices"`)
      unknown.add(name)
      return 0
    },
    contextTokens: (provider, modelId) => listed(provider, modelId, { input_tokens: 0 })?.model.context_window,
  }
}
