import { Elysia } from 'elysia'
import { authenticate } from './core/access.ts'
import { ApiError } from './errors.ts'
import { readJson } from './http/body.ts'
import { admit } from './http/caller.ts'
import { chatRoutes } from './http/chat.ts'
import { corsHeaders, preflight } from './http/cors.ts'
import { execRoutes } from './http/exec.ts'
import { failureResponse } from './http/failure.ts'
import { fileRoutes } from './http/files.ts'
import { gitRoutes } from './http/git.ts'
import { healthRoutes } from './http/health.ts'
import { sandboxRoutes } from './http/sandboxes.ts'
import { threadRoutes } from './http/threads.ts'
import { tokenRoutes } from './http/tokens.ts'
import type { Runtime } from './runtime.ts'

export interface App {
  fetch(request: Request): Promise<Response>
}

/** The whole of the HTTP interface. */
export function createApp(runtime: Runtime): App {
  const routes = new Elysia()
    .onRequest(({ request }) => {
      if (new URL(request.url).pathname === '/health') return
      admit(request, authenticate(runtime, request.headers.get('authorization')))
    })
    .onParse(({ request }) => readJson(request))
    .onError(({ error, code, request }) =>
      code === 'NOT_FOUND' ? missing(request) : failureResponse(error, runtime.log),
    )
    .use(healthRoutes())
    .use(sandboxRoutes(runtime))
    .use(execRoutes(runtime))
    .use(fileRoutes(runtime))
    .use(gitRoutes(runtime))
    .use(threadRoutes(runtime))
    .use(chatRoutes(runtime))
    .use(tokenRoutes(runtime))

  /** Elysia knows only that method and path together have no route. */
  const known = routes.routes.map(({ method, path }) => ({ method, path: pathPattern(path) }))
  function missing(request: Request): Response {
    const { pathname } = new URL(request.url)
    const methods = known.filter(({ path }) => path.test(pathname)).map(({ method }) => method)
    const error =
      methods.length > 0
        ? new ApiError('method_not_allowed', `${request.method} is not possible here: ${methods.join(', ')} is.`)
        : new ApiError('not_found', 'There is no such endpoint.')
    return Response.json(error, {
      status: error.status,
      ...(methods.length > 0 && { headers: { allow: methods.join(', ') } }),
    })
  }

  return {
    async fetch(request) {
      const { origins } = runtime.config
      if (request.method === 'OPTIONS') return preflight(request, origins)
      const response = await routes.handle(request)
      for (const [name, value] of Object.entries(corsHeaders(request, origins))) response.headers.set(name, value)
      return response
    },
  }
}

const pathPattern = (path: string): RegExp =>
  new RegExp(`^${path.replace(/\/$/, '').replaceAll(/:[^/]+/g, '[^/]+')}/?$`)
