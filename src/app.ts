import { Elysia } from 'elysia'
import { createMemory } from './async/shared-memory.ts'
import { bounds } from './bounds.ts'
import { authenticate } from './core/access/access.ts'
import type { Runtime } from './core/runtime.ts'
import { readLink } from './core/sandboxes/preview-links.ts'
import { ApiError } from './errors.ts'
import { lend } from './http/body.ts'
import { admit, admitBy, admitVisitor, keyOf } from './http/caller.ts'
import { committed } from './http/commit.ts'
import { corsHeaders, preflight } from './http/cors.ts'
import { failureResponse } from './http/failure.ts'
import { docsPaths, docsRoutes } from './http/openapi/docs.ts'
import { placeOf } from './http/preview/place.ts'
import { agentLogRoutes } from './http/routes/agent-logs.ts'
import { agentRoutes } from './http/routes/agents.ts'
import { chatRoutes } from './http/routes/chat.ts'
import { deployRoutes } from './http/routes/deploy.ts'
import { execRoutes } from './http/routes/exec.ts'
import { fileRoutes } from './http/routes/files.ts'
import { gitRoutes } from './http/routes/git.ts'
import { healthRoutes } from './http/routes/health.ts'
import { meRoutes } from './http/routes/me.ts'
import { previewRoutes } from './http/routes/previews.ts'
import { processRoutes } from './http/routes/processes.ts'
import { sandboxRoutes } from './http/routes/sandboxes.ts'
import { terminalRoutes } from './http/routes/terminal.ts'
import { threadRoutes } from './http/routes/threads.ts'
import { tokenRoutes } from './http/routes/tokens.ts'
import { usageRoutes } from './http/routes/usage.ts'
import { authorizationOf, type Sockets, type Upgrade } from './http/socket.ts'
import { watchStrangers } from './http/strangers.ts'
import { type Connections, createTraffic } from './http/traffic.ts'

/** As nginx has it. */
const CLIENT_GONE = 499

export interface App {
  fetch(request: Request): Promise<Response>
}

/** What the app asks of the server that it is behind. */
export interface AppServer extends Connections {
  upgrade?: Upgrade
  /** Where a request comes from, for the log. */
  addressOf?(request: Request): string | undefined
}

/** The whole of the HTTP interface. */
export function createApp(runtime: Runtime, server: AppServer = {}): App {
  const bodies = createMemory({ bytes: bounds.bodiesBytes, freeBytes: bounds.smallBodyBytes })
  const strangers = watchStrangers(runtime.log)
  const receivedAs = new WeakMap<Request, Request>()
  const traffic = createTraffic(runtime.config.requestsPerKey, server)
  const upgrade: Upgrade = (request, handlers, headers) => {
    const received = receivedAs.get(request) ?? request
    return server.upgrade?.(received, traffic.keepOpen(received, handlers), headers) ?? false
  }
  const messages = createMemory({ bytes: bounds.messagesBytes, freeBytes: bounds.smallBodyBytes })
  const sockets: Sockets = {
    upgrade,
    borrow: request => messages.borrow(keyOf(request)),
    turn: request => traffic.turn(keyOf(request)),
  }
  const api = new Elysia()
    .onError(({ error, code, request }) => {
      if (code === 'NOT_FOUND') return missing(request)
      // Nobody reads the answer; what the request did was ended by its signal.
      if (request.signal.aborted) return new Response(null, { status: CLIENT_GONE })
      return failureResponse(error, runtime.log)
    })
    .use(healthRoutes(runtime))
    .use(sandboxRoutes(runtime))
    .use(execRoutes(runtime))
    .use(processRoutes(runtime))
    .use(terminalRoutes(runtime, sockets))
    .use(fileRoutes(runtime))
    .use(gitRoutes(runtime))
    .use(threadRoutes(runtime))
    .use(chatRoutes(runtime))
    .use(tokenRoutes(runtime))
    .use(usageRoutes(runtime))
    .use(meRoutes(runtime))
    .use(deployRoutes(runtime))
    .use(agentRoutes(runtime))
    .use(agentLogRoutes(runtime))
    .use(previewRoutes(runtime, sockets))

  const routes = api.use(docsRoutes(api.routes, runtime.config.publicUrl))

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

  /** The refusal of a request whose sender is not known. */
  function refusal(request: Request): Response | undefined {
    if (openPaths.includes(new URL(request.url).pathname)) return undefined
    try {
      const link = placeOf(request)?.link
      const authorization = authorizationOf(request)
      admitBy(request, () => {
        if (link !== undefined) admitVisitor(request, readLink(runtime, link))
        else admit(request, authenticate(runtime, authorization))
      })
      return undefined
    } catch (error) {
      strangers.refused(error, server.addressOf?.(receivedAs.get(request) ?? request))
      return failureResponse(error, runtime.log)
    }
  }

  const answer = async (request: Request): Promise<Response> => {
    try {
      if (placeOf(request)) return await routes.handle(request)
      return await committed(runtime.db, request, () => routes.handle(request))
    } catch (error) {
      return failureResponse(error, runtime.log)
    }
  }

  const failed = (error: unknown) => failureResponse(error, runtime.log)

  return {
    async fetch(received) {
      const request = routable(received)
      if (!request) return failureResponse(new ApiError('invalid_request', 'host: not valid'), runtime.log)
      receivedAs.set(request, received)
      runtime.loop?.entered(nameOf(request))
      const { publicUrl } = runtime.config
      if (publicUrl !== undefined && new URL(request.url).pathname.startsWith('/gateway/')) {
        // Its tokens are of runs, and no key: programs in sandboxes show them.
        let isAdmitted = false
        const response = await runtime.gateway.handle(request, 'public', () => {
          isAdmitted = true
          server.timeout?.(received, 0)
        })
        return isAdmitted ? traffic.flow(received, response) : response
      }
      const place = placeOf(request)
      // Who has a link may use it from anywhere: a page of a preview has no origin to be named.
      const origins = place?.link === undefined ? runtime.config.origins : undefined
      if (request.method === 'OPTIONS' && (!place || isPreflight(request))) return preflight(request, origins)
      const refused = refusal(request)
      const key = keyOf(request)
      using loan = bodies.borrow(key)
      lend(request, loan)
      const carried = () => traffic.carry(received, { key, isForeign: place !== undefined }, () => answer(request))
      // Who has no key, as one that asks for /health, has short connections and answers.
      const response = refused ?? (key === '' ? await answer(request) : await carried().catch(failed))
      for (const [name, value] of Object.entries(corsHeaders(request, origins))) {
        if (name === 'vary') response.headers.append(name, value)
        else response.headers.set(name, value)
      }
      return response
    },
  }
}

/** A request for the operator: its path without what may be a secret, as a link, and no longer than a line. */
function nameOf({ method, url }: Request): string {
  const path = new URL(url).pathname.slice(0, 150)
  return `${method} ${path.split('/ports/', 1)[0]}`
}

/** What anyone may ask for. */
const openPaths = ['/health', ...docsPaths]

/** Where Elysia begins to look for the path. */
const ELYSIA_PATH_FROM = 11

/**
 * The request as the router and the admission read it alike: with a host of three letters, Elysia would find the path in
 * the query, and what is open under one path would open another. Undefined when the host makes no URL.
 */
function routable(request: Request): Request | undefined {
  const url = URL.parse(request.url)
  if (!url) return undefined
  const { pathname, search } = url
  if (request.url.startsWith(pathname, request.url.indexOf('/', ELYSIA_PATH_FROM))) return request
  return new Request(`http://localhost${pathname}${search}`, request)
}

const isPreflight = ({ headers }: Request): boolean => headers.has('access-control-request-method')

const pathPattern = (path: string): RegExp =>
  new RegExp(`^${path.replace(/\/$/, '').replaceAll(/:[^/]+/g, '[^/]+')}/?$`)
