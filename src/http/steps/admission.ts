import { authenticate } from '../../core/access/authenticate.ts'
import type { Runtime } from '../../core/runtime.ts'
import { readLink } from '../../core/sandboxes/preview-links.ts'
import type { AppServer } from '../app-server.ts'
import { createAuthenticationLog } from '../authentication-log.ts'
import type { Admission, RequestContext } from '../context.ts'
import { docsPaths } from '../openapi/docs.ts'
import { readAuthorization } from '../socket.ts'
import type { Step } from './step.ts'

/** Anyone may ask for these. */
const openPaths = ['/health', ...docsPaths]

/** Finds out who sent the request. Throws unauthorized, and logs each refusal with its address. */
export function admission(runtime: Runtime, server: AppServer): Step {
  const authenticationLog = createAuthenticationLog(runtime.log)
  return async (context, next) => {
    if (openPaths.includes(new URL(context.request.url).pathname)) return await next()
    try {
      const identify = identifier(runtime, context)
      context.admission = { ...identify(), isValid: () => succeeds(identify) }
    } catch (error) {
      authenticationLog.refused(error, server.addressOf?.(context.received))
      throw error
    }
    return await next()
  }
}

/** Reads the request's credential. The returned function checks it each time it is called; it throws unauthorized. */
function identifier(runtime: Runtime, { request, preview }: RequestContext): () => Omit<Admission, 'isValid'> {
  const link = preview?.link
  const authorization = readAuthorization(request)
  return () => {
    if (link === undefined) return { caller: authenticate(runtime, authorization) }
    const visitor = readLink(runtime, link)
    return { caller: visitor.caller, visitor }
  }
}

function succeeds(work: () => unknown): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}
