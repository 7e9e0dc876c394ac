import { idHeaders } from '../../stream/frame.ts'
import { limitHeaderNames } from '../limit-headers.ts'
import { REQUEST_ID } from './observe-requests.ts'
import type { Step } from './step.ts'

const exposed = [...idHeaders, REQUEST_ID, ...limitHeaderNames].join(', ')

/** Answers preflights, which carry no credentials, and says in other answers which origins may read them. */
export const cors =
  (allowed: readonly string[] | undefined): Step =>
  async ({ request, preview }, next) => {
    // A link may be used from anywhere: a page of a preview has no origin that a list could name.
    const origins = preview?.link === undefined ? allowed : undefined
    if (isPreflight(request) || (request.method === 'OPTIONS' && !preview)) {
      return new Response(null, { status: 204, headers: corsHeaders(request, origins) })
    }
    const response = await next()
    for (const [name, value] of Object.entries(corsHeaders(request, origins))) {
      if (name === 'vary') response.headers.append(name, value)
      else response.headers.set(name, value)
    }
    return response
  }

const isPreflight = ({ method, headers }: Request): boolean =>
  method === 'OPTIONS' && headers.has('access-control-request-method')

/** Lets this request's origin read the answer; without an origin, or with one that may not, it lets nobody. */
function corsHeaders(request: Request, origins: readonly string[] | undefined): Record<string, string> {
  const origin = request.headers.get('origin')
  // A cache must not show one origin's answer to another, refused or not.
  if (!origin || (origins && !origins.includes(origin))) return { vary: 'origin' }
  const asked = request.headers.get('access-control-request-headers')
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': exposed,
    vary: 'origin',
    ...(request.method === 'OPTIONS' && {
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
      'access-control-allow-headers': asked ?? 'authorization, content-type, last-event-id',
      'access-control-max-age': '86400',
    }),
  }
}
