import type { Provider } from './providers.ts'

/** The API that a call uses. */
export type CallWire = 'anthropic' | 'openai-responses' | 'openai-chat' | 'gemini'

/** A path that the gateway lets through. */
export interface Route {
  wire: CallWire
  method: 'GET' | 'POST'
  /** The upstream path after the provider's base URL. */
  path: string
  /** Whether it generates text. It is then metered, and needs a budget. */
  metered: boolean
  /** The model, when the path names it in place of the body. */
  model?: string
  /** Set for Gemini's own API, whose base URL differs from that of its OpenAI-compatible one. */
  native?: true
  /** Set when the call may name any model: it gets its run's model. */
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

/** The route of a path such as `/v1/messages`; undefined for a path that the gateway does not let through. */
export function findRoute(provider: Pick<Provider, 'wire'>, rest: string): Route | undefined {
  const [, path = ''] = /^\/v1(?:beta)?(\/.*)$/.exec(rest) ?? []
  if (path === '/models') return { wire: provider.wire, method: 'GET', path, metered: false }
  const [, model, verb] = /^\/models\/([\w.-]+):(generateContent|streamGenerateContent|countTokens)$/.exec(path) ?? []
  if (model) return { wire: 'gemini', method: 'POST', path, metered: verb !== 'countTokens', model, native: true }
  const route = fixed[path]
  return route && { ...route, path }
}

/** The route with the run's own model in its path, when the path names a model. */
export const withModel = (route: Route, modelId: string): Route =>
  route.model === undefined ? route : { ...route, path: route.path.replace(`/${route.model}:`, `/${modelId}:`) }

/** The URL of a call upstream, without a key in the query: that is the caller's token. */
export function upstreamUrl(provider: Provider, route: Route, search: string): string {
  const base = route.native ? provider.baseUrl.replace(/\/openai$/, '') : provider.baseUrl
  const query = new URLSearchParams(search)
  query.delete('key')
  const text = query.toString()
  return `${base}${route.path}${text && `?${text}`}`
}
