import { idHeaders } from '../stream/frame.ts'

/** The answer to a preflight, which carries no credentials. */
export function preflight(request: Request, origins: readonly string[] | undefined): Response {
  const headers = corsHeaders(request, origins)
  return new Response(null, { status: 204, headers })
}

/** What lets this request's origin read the answer; nothing for an origin that may not, and for no browser. */
export function corsHeaders(request: Request, origins: readonly string[] | undefined): Record<string, string> {
  const origin = request.headers.get('origin')
  // A cache must not show one origin's answer to another, refused or not.
  if (!origin || (origins && !origins.includes(origin))) return { vary: 'origin' }
  const asked = request.headers.get('access-control-request-headers')
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': idHeaders.join(', '),
    vary: 'origin',
    ...(request.method === 'OPTIONS' && {
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
      'access-control-allow-headers': asked ?? 'authorization, content-type, last-event-id',
      'access-control-max-age': '86400',
    }),
  }
}
