import { excerpt } from '../bounds.ts'
import { ApiError } from '../errors.ts'
import type { ModelAccess } from '../plugin-api/index.ts'
import type { ProviderSetting } from './settings.ts'

/** Where the calls of a provider's models go. */
export interface Provider {
  name: string
  /** The API that engines speak with it. */
  wire: ModelAccess['wire']
  /** With the API's version path, without a slash at its end. */
  baseUrl: string
  /** The real key; undefined when the provider needs none. It leaves this process only towards `baseUrl`. */
  key?: string
  /** The provider's name in the price list; undefined when its models cost nothing. */
  priceList?: string
  /** A model of this provider that codes well, used when no model is named. */
  defaultModel?: string
}

export interface ProviderSettings {
  /** `provider/model`. */
  model?: string
  /** The base URL of the provider that `model` names. */
  modelUrl?: string
  modelKey?: string
  providers: Readonly<Record<string, ProviderSetting>>
}

interface Preset extends Omit<Provider, 'name' | 'key'> {
  /** Environment variables: the first that is set holds the key. Empty when the provider needs no key. */
  keyNames: string[]
}

/** In the order in which the agent `coder` prefers them. */
const presets = new Map<string, Preset>(
  Object.entries({
    anthropic: {
      wire: 'anthropic',
      baseUrl: 'https://api.anthropic.com/v1',
      keyNames: ['ANTHROPIC_API_KEY'],
      priceList: 'anthropic',
      defaultModel: 'claude-sonnet-4-6',
    },
    openai: {
      wire: 'openai-responses',
      baseUrl: 'https://api.openai.com/v1',
      keyNames: ['OPENAI_API_KEY'],
      priceList: 'openai',
      defaultModel: 'gpt-5.2',
    },
    gemini: {
      wire: 'openai-chat',
      baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
      keyNames: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
      priceList: 'google',
      defaultModel: 'gemini-2.5-pro',
    },
    openrouter: {
      wire: 'openai-chat',
      baseUrl: 'https://openrouter.ai/api/v1',
      keyNames: ['OPENROUTER_API_KEY'],
      priceList: 'openrouter',
      defaultModel: 'anthropic/claude-sonnet-4.6',
    },
    ollama: { wire: 'openai-chat', baseUrl: 'http://127.0.0.1:11434/v1', keyNames: [] },
  }),
)

/** The providers that can be called: those with a key, those that need none, and the one that `model` names. */
export function readProviders(
  settings: ProviderSettings,
  environment: Readonly<Record<string, string | undefined>>,
): Map<string, Provider> {
  const providers = new Map<string, Provider>()
  const add = ({ key, ...provider }: Omit<Provider, 'key'> & { key: string | undefined }) =>
    providers.set(provider.name, {
      ...provider,
      baseUrl: trimmed(provider.baseUrl, provider.wire),
      ...(key && { key }),
    })

  for (const [name, { keyNames, ...preset }] of presets) {
    const key = keyNames.map(each => environment[each]).find(Boolean)
    if (keyNames.length > 0 && !key) continue
    add({ ...preset, name, key, baseUrl: environment[`${variable(name)}_BASE_URL`] || preset.baseUrl })
  }
  for (const [name, { wire, baseUrl, keyEnv }] of Object.entries(settings.providers)) {
    const key = keyEnv === undefined ? undefined : environment[keyEnv]
    add({ ...priced(name), name, wire, baseUrl, key })
  }
  if (settings.model !== undefined && settings.modelUrl !== undefined) {
    const { provider: name } = splitModel(settings.model)
    const key = settings.modelKey ?? environment[`${variable(name)}_API_KEY`]
    const wire = name === 'anthropic' ? 'anthropic' : 'openai-chat'
    add({ ...priced(name), name, wire, baseUrl: settings.modelUrl, key })
  }
  return providers
}

/** The model that is used when none is named: that of the first provider with a key. `provider/model`, or undefined. */
export function defaultModel(providers: ReadonlyMap<string, Provider>): string | undefined {
  for (const { name, key, defaultModel } of providers.values())
    if (key && defaultModel) return `${name}/${defaultModel}`
  return undefined
}

/** The parts of `provider/model`; a model's id may have slashes of its own. */
function splitModel(model: string): { provider: string; id: string } {
  const slash = model.indexOf('/')
  return { provider: model.slice(0, Math.max(slash, 0)), id: model.slice(slash + 1) }
}

/** A model's name with its provider, by default that of `fallback`. Throws invalid_request when there is no model. */
export function nameModel(asked: string | undefined, fallback: string | undefined): string {
  const model = asked ?? fallback
  if (model === undefined) {
    const remedy = "give the agent a model, or start the server with a provider's key or --model"
    throw new ApiError('invalid_request', `There is no model: ${remedy}.`)
  }
  return model.includes('/') || fallback === undefined ? model : `${splitModel(fallback).provider}/${model}`
}

/** The provider of `provider/model` and the model's id there. Throws invalid_request that says what is missing. */
export function findModel(providers: ReadonlyMap<string, Provider>, model: string): { provider: Provider; id: string } {
  const { provider: name, id } = splitModel(model)
  if (!name || !id) throw new ApiError('invalid_request', `model: ${excerpt(model)} must be provider/model`)
  const provider = providers.get(name)
  if (provider) return { provider, id }
  const remedy = presets.has(name) ? `set ${presets.get(name)?.keyNames[0]}` : 'give its --model-url'
  throw new ApiError(
    'invalid_request',
    `model: the provider ${excerpt(name)} is not set up here; ${remedy} where the server starts`,
  )
}

/** Environment variables that may hold the key of a model's provider. Empty when it is not built in, or needs no key. */
export const keyNamesOf = (model: string | undefined): readonly string[] =>
  presets.get(splitModel(model ?? '').provider)?.keyNames ?? []

const variable = (name: string) => name.toUpperCase().replaceAll('-', '_')

const priced = (name: string): Pick<Provider, 'priceList'> => {
  const priceList = presets.get(name)?.priceList
  return priceList === undefined ? {} : { priceList }
}

/** Adds the API's version where it is missing: Anthropic's SDK, other than others, takes a base URL without it. */
function trimmed(baseUrl: string, wire: Provider['wire']): string {
  let end = baseUrl.length
  while (baseUrl[end - 1] === '/') end--
  const url = baseUrl.slice(0, end)
  const hasVersion = wire === 'anthropic' ? url.endsWith('/v1') : new URL(url).pathname !== '/'
  return hasVersion ? url : `${url}/v1`
}
