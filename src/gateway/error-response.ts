import type { CallWire } from './routes.ts'

const kinds = {
  400: { anthropic: 'invalid_request_error', openai: 'invalid_request_error', gemini: 'INVALID_ARGUMENT' },
  401: { anthropic: 'authentication_error', openai: 'invalid_request_error', gemini: 'UNAUTHENTICATED' },
  402: { anthropic: 'billing_error', openai: 'insufficient_quota', gemini: 'RESOURCE_EXHAUSTED' },
  403: { anthropic: 'permission_error', openai: 'invalid_request_error', gemini: 'PERMISSION_DENIED' },
  404: { anthropic: 'not_found_error', openai: 'invalid_request_error', gemini: 'NOT_FOUND' },
  413: { anthropic: 'request_too_large', openai: 'invalid_request_error', gemini: 'INVALID_ARGUMENT' },
  429: { anthropic: 'rate_limit_error', openai: 'rate_limit_error', gemini: 'RESOURCE_EXHAUSTED' },
  408: { anthropic: 'timeout_error', openai: 'server_error', gemini: 'DEADLINE_EXCEEDED' },
  503: { anthropic: 'overloaded_error', openai: 'server_error', gemini: 'UNAVAILABLE' },
  502: { anthropic: 'api_error', openai: 'server_error', gemini: 'UNAVAILABLE' },
} as const

export type ErrorStatus = keyof typeof kinds

/** An error of the gateway itself, in the form of the provider's errors. Clients retry only what may succeed later. */
export function errorResponse(wire: CallWire, status: ErrorStatus, message: string, code?: string): Response {
  const kind = kinds[status]
  const retry = status === 429 || status >= 502 || status === 408
  return Response.json(formatBody(wire, status, message, code ?? kind.openai), {
    status,
    headers: { 'x-should-retry': String(retry) },
  })

  function formatBody(wire: CallWire, status: number, message: string, code: string) {
    if (wire === 'anthropic') return { type: 'error', error: { type: kind.anthropic, message } }
    if (wire === 'gemini') return { error: { code: status, message, status: kind.gemini } }
    return { error: { message, type: kind.openai, param: null, code } }
  }
}
