import { authenticate } from '../../core/access/authenticate.ts'
import { assertScope } from '../../core/access/scopes.ts'
import { authenticateSession } from '../../core/access/sessions.ts'
import type { Failures } from '../../core/limits/failures.ts'
import type { Runtime } from '../../core/runtime.ts'
import { readLink } from '../../core/sandboxes/preview-links.ts'
import { ApiError } from '../../errors.ts'
import type { AuthenticationLog } from '../authentication-log.ts'
import type { Admission, RequestContext } from '../context.ts'
import { failureResponse } from '../failure.ts'
import { docsPaths } from '../openapi/docs-paths.ts'
import { findScopes } from '../scopes.ts'
import { readSession, sessionCookie } from '../session-cookie.ts'
import { readAuthorization } from '../socket.ts'
import type { Step } from './step.ts'

/** Anyone may ask for these. */
const openPaths = ['/health', '/health/ready', ...docsPaths]

/** A browser that signs in has its credential in the body only. */
const isSignIn = ({ method }: Request, path: string) => method === 'POST' && path === '/v1/session'

/** A page asks whether its browser is signed in. Without a credential the answer is no, which does not count as a refusal. */
const asksForSession = ({ method }: Request, path: string) => method === 'GET' && path === '/v1/session'

/** Records refused credentials, whatever they were sent for. */
export interface Guard {
  failures: Failures
  log: AuthenticationLog
}

/** Finds out who sent the request. Throws unauthorized, and logs each refusal with its address. */
export function admission(runtime: Runtime, { failures, log: authenticationLog }: Guard): Step {
  return async (context, next) => {
    const { pathname } = new URL(context.request.url)
    if (openPaths.includes(pathname)) return await next()
    const { address, request } = context
    if (isSignIn(request, pathname)) {
      await failures.admit(address, '', request.signal)
      const response = await next()
      if (response.status !== 401) return response
      failures.failed(address, '')
      authenticationLog.refused(new ApiError('unauthorized', 'no sign-in'), context)
      return response
    }
    if (asksForSession(request, pathname) && !hasCredential(runtime, request)) return await next()
    let shown: string | undefined
    try {
      const credential = readCredential(runtime, context)
      const identify = identifier(runtime, credential)
      shown = credential.link ?? credential.authorization ?? credential.session
      if (shown !== undefined) {
        const turn = failures.admit(address, shown, request.signal)
        if (turn) await turn
      }
      const { caller, ...admitted } = identify()
      if (shown !== undefined) failures.passed(address, shown)
      const sent = { requestId: context.id, ...(address !== undefined && { address }) }
      context.admission = {
        ...admitted,
        caller: { ...caller, request: sent },
        isValid: () => succeeds(identify),
      }
    } catch (error) {
      if (shown !== undefined && isUnauthorized(error)) failures.failed(address, shown)
      authenticationLog.refused(error, context)
      if (!asksForSession(request, pathname) || !isDead(error, request)) throw error
      return withoutCookie(failureResponse(error, runtime.log), request, runtime.config.publicUrl)
    }
    const wanted = findScopes(request.method, pathname)
    if (wanted) assertScope(context.admission.caller, wanted)
    return await next()
  }
}

/** The credential of a request; a request has one at most. */
interface Credential {
  link?: string
  authorization?: string
  session?: string
}

/** Throws forbidden for a session's cookie on a request of another origin's page. */
function readCredential({ config }: Runtime, { request, preview }: RequestContext): Credential {
  if (preview?.link !== undefined) return { link: preview.link }
  const authorization = readAuthorization(request)
  if (authorization !== null) return { authorization }
  const session = readSession(request, config.publicUrl)
  return session === undefined ? {} : { session }
}

/** Returns a function that checks the credential anew at each call, and throws unauthorized. */
function identifier(runtime: Runtime, { link, authorization, session }: Credential): () => Omit<Admission, 'isValid'> {
  return () => {
    if (session !== undefined) return { caller: authenticateSession(runtime, session) }
    if (link === undefined) return { caller: authenticate(runtime, authorization ?? null) }
    const visitor = readLink(runtime, link)
    return { caller: visitor.caller, visitor }
  }
}

/** Whether a refused cookie can never become valid again. */
const isDead = (error: unknown, request: Request): boolean =>
  isUnauthorized(error) && readAuthorization(request) === null

const isUnauthorized = (error: unknown): boolean => error instanceof ApiError && error.code === 'unauthorized'

/**
 * Removes the cookie from the browser, so that the next opening of the page is not a refusal. The page asks for its session
 * before it shows the sign-in form, so this cannot remove a newer cookie.
 */
function withoutCookie(response: Response, request: Request, publicUrl: string | undefined): Response {
  response.headers.append('set-cookie', sessionCookie(request, publicUrl, '', new Date(0)))
  return response
}

const hasCredential = ({ config }: Runtime, request: Request): boolean =>
  readAuthorization(request) !== null || readSession(request, config.publicUrl) !== undefined

function succeeds(work: () => unknown): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}
