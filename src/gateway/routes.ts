import type { Provider } from './providers.ts'

/** What a call speaks. */
export type CallWire = 'anthropic' | 'openai-responses' | 'openai-chat' | 'gemini'

/** A path that the gateway lets through. */
export interface Route {
  wire: CallWire
  method: 'GET' | 'POST'
  /** Of the upstream, after the provider's base URL. */
  path: string
  /** Generates, so it is metered and needs a budget. */
  metered: boolean
  /** The model, where the path and not the body names it. */
  model?: string
  /** What is asked of Gemini's own API, whose base differs from its OpenAI-compatible one. */
  native?: true
  /** Whatever model the call names, it gets its run's. */
  anyModel?: true
}

const fixed: Readonly<Record<string, Omit<Route, 'path'>>> = {
  '/messages': { wire: 'anthropic', method: 'POST', metered: true },
  '/messages/count_tokens': { wire: 'anthropic', method: 'POST', metered: false },
  '/chat/completions': { wire: 'openai-chat', method: 'POST', metered: true },
  '/responses': { wire: 'openai-responses', method: 'POST', metered: true },
}

/** The provider's name and the rest of a gateway path; undefined for any other path. */
export function splitPath(pathname: string): { provider: string; rest: string } | undefined {
  const [, provider, rest] = /^\/gateway\/([a-z0-9-]+)(\/.*)?$/.exec(pathname) ?? []
  return provider === undefined ? undefined : { provider, rest: rest ?? '' }
}

/** The route of a path such as `/v1/messages`, or undefined: nothing else is let through. */
export function findRoute(provider: Pick<Provider, 'wire'>, rest: string): Route | undefined {
  const [, path = ''] = /^\/v1(?:beta)?(\/.*)$/.exec(rest) ?? []
  if (path === '/models') return { wire: provider.wire, method: 'GET', path, metered: false }
  const [, model, verb] = /^\/models\/([\w.-]+):(generateContent|streamGenerateContent|countTokens)$/.exec(path) ?? []
  if (model) return { wire: 'gemini', method: 'POST', path, metered: verb !== 'countTokens', model, native: true }
  const route = fixed[path]
  return route && { ...route, path }
}

/** The route with the run's own model in its path, where the path names one. */
export const withModel = (route: Route, modelId: string): Route =>
  route.model === undefined ? route : { ...route, path: route.path.replace(`/${route.model}:`, `/${modelId}:`) }

/** Where a call goes. A key in the query is the caller's own, and is left out. */
export function upstreamUrl(provider: Provider, route: Route, search: string): string {
  const base = route.native ? provider.baseUrl.replace(/\/openai$/, '') : provider.baseUrl
  const query = new URLSearchParams(search)
  query.delete('key')
  const text = query.toString()
  return `${base}${route.path}${text && `?${text}`}`
}
