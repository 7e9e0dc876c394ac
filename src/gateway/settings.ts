import type { ModelAccess } from '../plugin-api/index.ts'
import { isObject, type JsonObject } from '../read/json.ts'
import { readJson } from '../read/json-text.ts'

/** USD per million tokens. Cache tokens without a price of their own cost as input. */
export interface ModelPrice {
  input: number
  output: number
  cacheRead?: number
  cacheWrite?: number
}

/** Prices by `provider/model` or by the model's id alone. */
export type PriceTable = Readonly<Record<string, ModelPrice>>

/** A provider as the operator writes it. */
export interface ProviderSetting {
  wire: ModelAccess['wire']
  /** With the API's version path. */
  baseUrl: string
  /** The environment variable that holds the key; undefined when the provider needs no key. */
  keyEnv?: string
}

const wires: readonly string[] = ['anthropic', 'openai-responses', 'openai-chat'] satisfies ModelAccess['wire'][]

/** Reads the setting `prices`. Throws an error that says what it must be. */
export function parsePrices(text: string): PriceTable {
  const prices = Object.entries(parseObject(text)).map(([model, price]): [string, ModelPrice] => {
    if (isPrice(price)) return [model, price]
    throw new Error(`${model}: must have input and output, and may have cacheRead and cacheWrite`)
  })
  return Object.fromEntries(prices)
}

/** Reads the setting `providers`. Throws an error that says what it must be. */
export function parseProviders(text: string): Record<string, ProviderSetting> {
  const providers = Object.entries(parseObject(text)).map(([name, provider]): [string, ProviderSetting] => {
    if (!isProviderName(name)) throw new Error(`${name}: must be lower-case letters, digits and hyphens`)
    if (isProvider(provider)) return [name, provider]
    throw new Error(`${name}: must have wire (${wires.join(', ')}) and baseUrl, may have keyEnv`)
  })
  return Object.fromEntries(providers)
}

/** Provider names are part of paths and of model names. */
const isProviderName = (name: string): boolean => /^[a-z0-9][a-z0-9-]{0,63}$/.test(name)

/** Normalizes a base URL. Throws when it is not http or https, or has credentials, a query or a hash. */
export function parseBaseUrl(text: string): string {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new Error('must be a URL like http://localhost:11434/v1')
  }
  return url.href
}

function parseObject(text: string): JsonObject {
  const value = readJson(text)
  if (!isObject(value)) throw new Error('must be a JSON object')
  return value
}

function isPrice(value: unknown): value is ModelPrice {
  if (!isObject(value) || !('input' in value) || !('output' in value)) return false
  const known = ['input', 'output', 'cacheRead', 'cacheWrite']
  return Object.entries(value).every(
    ([name, usd]) => known.includes(name) && typeof usd === 'number' && Number.isFinite(usd) && usd >= 0,
  )
}

function isProvider(value: unknown): value is ProviderSetting {
  if (!isObject(value)) return false
  if (!wires.includes(String(value.wire)) || typeof value.baseUrl !== 'string') return false
  if ('keyEnv' in value && typeof value.keyEnv !== 'string') return false
  parseBaseUrl(value.baseUrl)
  return true
}
