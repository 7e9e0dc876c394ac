import { Elysia } from 'elysia'
import type { Log } from '../core/runtime.ts'
import { ApiError } from '../errors.ts'
import { findContext } from './context.ts'
import { failureResponse } from './failure.ts'

/** Where Elysia does not do what this API needs. */

/** The status that nginx logs when a client closed the connection before the answer. */
const CLIENT_GONE = 499

/** A router without routes, which answers errors, unknown paths and unknown methods in the API's form. */
export function createRouter(log: Log) {
  const router = new Elysia()
  let patterns: { method: string; path: RegExp }[] | undefined
  return router.onError(({ error, code, request }) => {
    if (code === 'NOT_FOUND') {
      // Read at the first use: routes are added later than this handler.
      patterns ??= router.routes.map(({ method, path }) => ({ method, path: pathPattern(path) }))
      return noRoute(request, patterns)
    }
    // Nobody reads the answer; the request's work was ended by its signal.
    if (request.signal.aborted) return new Response(null, { status: CLIENT_GONE })
    return failureResponse(error, log, findContext(request)?.id)
  })
}

/** Elysia knows only that method and path together have no route: with another method the path may have one. */
function noRoute({ method, url }: Request, patterns: readonly { method: string; path: RegExp }[]): Response {
  const { pathname } = new URL(url)
  const known = patterns.filter(({ path }) => path.test(pathname))
  const allow = known.map(each => each.method).join(', ')
  const error = allow
    ? new ApiError('method_not_allowed', `${method} is not allowed here. Allowed: ${allow}.`)
    : new ApiError('not_found', 'There is no such endpoint.')
  return Response.json(error, { status: error.status, ...(allow && { headers: { allow } }) })
}

const pathPattern = (path: string): RegExp =>
  new RegExp(`^${path.replace(/\/$/, '').replaceAll(/:[^/]+/g, '[^/]+')}/?$`)

/** Elysia looks for the path's slash from this character on. */
const ELYSIA_PATH_FROM = 11

/**
 * The request in a form in which the router and the admission read the same path: with a host of three letters, Elysia
 * would find the path in the query, and what is open under one path would open another. Undefined when the host makes no
 * URL.
 */
export function toRoutable(request: Request): Request | undefined {
  const url = URL.parse(request.url)
  if (!url) return undefined
  const { pathname, search } = url
  if (request.url.startsWith(pathname, request.url.indexOf('/', ELYSIA_PATH_FROM))) return request
  const { method, headers, body, signal } = request
  // A copy of the request itself would hold the whole of a body that is read piece by piece.
  return new Request(`http://localhost${pathname}${search}`, { method, headers, body, signal })
}
