import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { describeCaller } from '../../core/access/caller.ts'
import { endSession, listTeamSessions, signIn } from '../../core/access/sessions.ts'
import type { Runtime } from '../../core/runtime.ts'
import { ApiError } from '../../errors.ts'
import type { Session } from '../../model/session.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { getContext } from '../context.ts'
import { isSameOrigin, sessionCookie } from '../session-cookie.ts'

/** The longest text that is compared with keys: a longer one is refused in the same way. */
const MAX_SECRET_LENGTH = 4096
/** A small limit, because anyone may send this request. */
const MAX_BODY_BYTES = 2 * MAX_SECRET_LENGTH
const Secret = Type.String({ minLength: 1, maxLength: MAX_SECRET_LENGTH })

const SignIn = Type.Object({ key: Type.Optional(Secret), link: Type.Optional(Secret) }, { additionalProperties: false })

/** Browsers that are signed in to the console, by a cookie that no script can read. */
export const sessionRoutes = (runtime: Runtime) => {
  const { config } = runtime
  return new Elysia({ prefix: '/v1' })
    .post(
      '/session',
      ({ request, body: { key, link }, set, status }) => {
        if (!isSameOrigin(request, config.publicUrl))
          throw new ApiError('forbidden', 'Only a page of this server can sign in.')
        if ((key === undefined) === (link === undefined))
          throw new ApiError('invalid_request', 'key: send a key, or the secret of a link', { field: 'key' })
        const browser = (request.headers.get('user-agent') ?? '').slice(0, bounds.id)
        const credential = key === undefined ? { link: link ?? '' } : { key }
        const { id: requestId, address } = getContext(request)
        const from = { requestId, ...(address !== undefined && { address }) }
        const { session, secret } = signIn(runtime, credential, browser, from)
        set.headers['set-cookie'] = sessionCookie(request, config.publicUrl, secret, new Date(session.expiresAt))
        return status(201, show(session))
      },
      json(SignIn, undefined, MAX_BODY_BYTES),
    )
    .get('/session', ({ request }) => {
      const { admission } = getContext(request)
      if (!admission) return { id: null, caller: null }
      const { caller } = admission
      return { id: caller.sessionId ?? null, caller: describeCaller(runtime, caller) }
    })
    .delete('/session', ({ request, set, status }) => {
      const caller = getCaller(request)
      if (caller.sessionId === undefined) throw new ApiError('not_found', 'The request came without a session.')
      endSession(runtime, caller, caller.sessionId)
      set.headers['set-cookie'] = sessionCookie(request, config.publicUrl, '', new Date(0))
      return status(204, undefined)
    })
    .get('/sessions', ({ request }) => {
      const caller = getCaller(request)
      const sessions = listTeamSessions(runtime, caller)
      return { sessions: sessions.map(each => ({ ...show(each), isCurrent: each.id === caller.sessionId })) }
    })
    .delete(
      '/sessions/:sessionId',
      ({ request, params: { sessionId }, status }) => {
        endSession(runtime, getCaller(request), sessionId)
        return status(204, undefined)
      },
      { params: Type.Object({ sessionId: Type.String() }) },
    )
}

const show = ({ id, keyId, browser, createdAt, expiresAt }: Session) => ({
  id,
  keyId: keyId ?? null,
  browser,
  createdAt,
  expiresAt,
})
