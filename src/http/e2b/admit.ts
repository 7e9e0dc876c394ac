import { authenticate } from '../../core/access/authenticate.ts'
import type { Caller } from '../../core/access/caller.ts'
import { assertScope } from '../../core/access/scopes.ts'
import { toE2bId } from '../../core/e2b/ids.ts'
import {
  findGone,
  isE2bSandbox,
  openBySignature,
  openPublicly,
  readE2bToken,
  type SignedFile,
} from '../../core/e2b/tokens.ts'
import type { Runtime } from '../../core/runtime.ts'
import { ApiError } from '../../errors.ts'
import type { RequestContext } from '../context.ts'
import type { Guard } from '../steps/admission.ts'
import type { Step } from '../steps/step.ts'
import { notRunning } from './failure.ts'
import { type E2bTarget, ENVD_PORT } from './target.ts'

const TRAFFIC_TOKEN = 'e2b-traffic-access-token'

/** Authenticates the header `X-API-KEY`. Throws unauthorized, and forbidden without the scope. */
export const admitControl =
  (runtime: Runtime, guard: Guard): Step =>
  async (context, next) => {
    const { method, headers } = context.request
    const key = headers.get('x-api-key')
    await admit(guard, context, key ?? undefined, () => readKey(runtime, key))
    const isRead = method === 'GET' || method === 'HEAD'
    assertScope(callerOf(context), isRead ? ['read', 'sandboxes'] : ['sandboxes'])
    return await next()
  }

function readKey(runtime: Runtime, key: string | null): Caller {
  if (key === null) throw new ApiError('unauthorized', 'Send an API key in the header X-API-KEY.')
  const caller = authenticate(runtime, `Bearer ${key}`)
  if (caller.token) throw new ApiError('unauthorized', 'A token is no API key.')
  return caller
}

/** Finds the sandbox of a port, and the caller that may use it. Anyone may ask whether a sandbox is healthy. */
export const admitPort =
  (runtime: Runtime, guard: Guard): Step =>
  async (context, next) => {
    const { request, e2b: target } = context
    if (target?.kind !== 'port') throw new Error('a request without a port')
    const { pathname } = new URL(request.url)
    if (target.port === 0) throw new ApiError('invalid_request', 'The port must be a number from 1 to 65535.')
    const { named, sandboxId } = target
    if (named !== undefined && (sandboxId === undefined || !isE2bSandbox(runtime, sandboxId))) return notRunning(named)
    if (target.port !== ENVD_PORT && sandboxId !== undefined) {
      await admitTraffic(runtime, guard, context, sandboxId)
      return await next()
    }
    const token = request.headers.get('x-access-token')
    const gone = token === null ? undefined : findGone(runtime, token)
    if (gone !== undefined) return notRunning(toE2bId(gone))
    if (pathname !== '/health' || named === undefined) await admitEnvd(runtime, guard, context, target)
    return await next()
  }

async function admitTraffic(runtime: Runtime, guard: Guard, context: RequestContext, sandboxId: string): Promise<void> {
  const token = context.request.headers.get(TRAFFIC_TOKEN)
  await admit(guard, context, token ?? undefined, () => {
    const opened = openPublicly(runtime, sandboxId) ?? (token ? readE2bToken(runtime, 'traffic', token) : undefined)
    if (opened?.sandboxId !== sandboxId) throw new ApiError('forbidden', 'The port needs the traffic access token.')
    return opened.caller
  })
}

type PortTarget = Extract<E2bTarget, { kind: 'port' }>

async function admitEnvd(runtime: Runtime, guard: Guard, context: RequestContext, target: PortTarget): Promise<void> {
  const { request } = context
  const token = request.headers.get('x-access-token')
  const { searchParams, pathname } = new URL(request.url)
  const signature = pathname === '/files' ? searchParams.get('signature') : null
  const refused = (why: string) => new ApiError('unauthorized', why)
  const isNamed = target.named !== undefined
  if (token !== null || signature === null) {
    await admit(guard, context, token ?? undefined, () => {
      const opened = token === null ? undefined : readE2bToken(runtime, 'access', token)
      if (!opened || (isNamed && opened.sandboxId !== target.sandboxId)) throw refused('The access token is not valid.')
      target.sandboxId = opened.sandboxId
      return opened.caller
    })
  } else {
    const file = readSigned(request)
    const find = () => openBySignature(runtime, file, signature, target.sandboxId)
    const opened = await guarded(guard, context, signature, async () => {
      const found = await find()
      if (!found) throw refused('The signature is not valid.')
      return found
    })
    target.sandboxId = opened.sandboxId
    await admit(guard, context, undefined, () => opened.caller)
  }
  assertScope(callerOf(context), ['sandboxes'])
}

/** Throws unauthorized for a link that has expired. */
function readSigned(request: Request): SignedFile {
  const { searchParams } = new URL(request.url)
  const expires = searchParams.get('signature_expiration')
  if (expires !== null && !(Number(expires) * 1000 > Date.now()))
    throw new ApiError('unauthorized', 'signature is already expired')
  const user = searchParams.get('username')
  return {
    path: searchParams.get('path') ?? '',
    operation: request.method === 'GET' || request.method === 'HEAD' ? 'read' : 'write',
    ...(user !== null && { user }),
    ...(expires !== null && { expires }),
  }
}

/** Admits the caller that `identify` finds. It is called again as long as the request lasts. */
async function admit(
  guard: Guard,
  context: RequestContext,
  shown: string | undefined,
  identify: () => Caller,
): Promise<void> {
  const caller = await guarded(guard, context, shown, async () => identify())
  const { id: requestId, address } = context
  context.admission = {
    caller: { ...caller, request: { requestId, ...(address !== undefined && { address }) } },
    isValid() {
      try {
        identify()
        return true
      } catch {
        return false
      }
    },
  }
}

/** Slows down callers who guess credentials, and logs each refusal. */
async function guarded<Result>(
  { failures, log }: Guard,
  context: RequestContext,
  shown: string | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  const { address, request } = context
  if (shown !== undefined) await failures.admit(address, shown, request.signal)
  try {
    const result = await work()
    if (shown !== undefined) failures.passed(address, shown)
    return result
  } catch (error) {
    const isRefused = error instanceof ApiError && ['unauthorized', 'forbidden'].includes(error.code)
    if (isRefused && shown !== undefined) failures.failed(address, shown)
    log.refused(error, context)
    throw error
  }
}

function callerOf({ admission }: RequestContext): Caller {
  if (!admission) throw new Error('a request without a caller')
  return admission.caller
}
