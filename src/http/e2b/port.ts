import { toE2bId } from '../../core/e2b/ids.ts'
import { type KnownSandbox, reachE2bSandbox } from '../../core/e2b/sandboxes.ts'
import type { Runtime } from '../../core/runtime.ts'
import { openPreview } from '../../core/sandboxes/previews.ts'
import { ApiError } from '../../errors.ts'
import { HttpError } from '../../http1/http-error.ts'
import { type RequestContext, takeFlow } from '../context.ts'
import { outflow } from '../outflow.ts'
import { forward } from '../preview/forward.ts'
import { isWebSocket, joinSocket } from '../preview/socket.ts'
import { type Sockets, SWITCHING_PROTOCOLS } from '../socket.ts'
import type { EnvdHandler } from './envd.ts'
import { notRunning, refusal } from './failure.ts'
import { passageOf } from './passage.ts'
import { ENVD_PORT, INTERPRETER_PORT } from './target.ts'

/** Answers requests to a port of a sandbox. They are cut off when the sandbox is removed or paused. */
export async function servePort(
  runtime: Runtime,
  sockets: Sockets,
  answerEnvd: EnvdHandler,
  context: RequestContext,
): Promise<Response> {
  const { e2b: target, request, admission } = context
  if (target?.kind !== 'port') throw new Error('a request without a port')
  // A request without a token may only ask whether the sandbox is healthy, and starts none.
  const wakes = admission !== undefined
  const known = target.sandboxId === undefined ? undefined : await reachE2bSandbox(runtime, target.sandboxId, { wakes })
  if (!known) return notRunning(target.named ?? (target.sandboxId && toE2bId(target.sandboxId)) ?? '')
  const cut = new AbortController()
  const watched = runtime.e2b.watch(known.sandbox.id, () =>
    cut.abort(new ApiError('sandbox_not_found', 'The sandbox has ended.')),
  )
  const signal = AbortSignal.any([request.signal, cut.signal])
  try {
    const caller = admission?.caller ?? { teamId: known.sandbox.teamId, scopes: [] }
    if (target.port !== ENVD_PORT) return await passOn(runtime, sockets, context, { ...known, signal, watched })
    const answering = answerEnvd(request, known, { runtime, caller, signal })
    if (!answering) {
      watched[Symbol.dispose]()
      return refusal(404, 'There is no such endpoint.')
    }
    return flowing(context, await answering, cut.signal, watched)
  } catch (error) {
    watched[Symbol.dispose]()
    if (cut.signal.aborted) return notRunning(toE2bId(known.sandbox.id))
    throw error
  }
}

/** Passes an answer on at its reader's pace. The connection breaks when the sandbox has ended. */
function flowing(context: RequestContext, response: Response, cut: AbortSignal, watched: Disposable): Response {
  const isWhole = !response.body || response.headers.has('content-length')
  if (!response.body || isWhole || !context.startFlow || context.request.method === 'HEAD') {
    watched[Symbol.dispose]()
    return response
  }
  const flow = takeFlow(context.request)
  const onEnd = () => {
    watched[Symbol.dispose]()
    flow.onEnd()
  }
  const body = outflow(response.body, { ...flow, onEnd, signal: AbortSignal.any([flow.signal, cut]) })
  return new Response(body, response)
}

async function passOn(
  runtime: Runtime,
  sockets: Sockets,
  context: RequestContext,
  { sandbox, e2b, signal, watched }: KnownSandbox & { signal: AbortSignal; watched: Disposable },
): Promise<Response> {
  const { e2b: target, request, admission } = context
  if (target?.kind !== 'port' || !admission) throw new Error('a request without a port')
  const { port, isByHost } = target
  const where = { sandboxId: sandbox.id, port }
  const open = () =>
    openPreview(runtime, admission, where).catch(error => {
      if (!(error instanceof ApiError) || error.code !== 'port_unreachable') throw error
      return undefined
    })
  let preview = await open()
  if (!preview && port === INTERPRETER_PORT) {
    const { startInterpreter } = await import('../../core/e2b/interpreter.ts')
    const state = await startInterpreter(runtime, admission.caller, where, signal)
    if (state === 'absent') {
      watched[Symbol.dispose]()
      return refusal(404, 'The template of the sandbox has no code interpreter.')
    }
    preview = await open()
  }
  if (!preview) {
    watched[Symbol.dispose]()
    return closedPort(sandbox.id, port)
  }
  const { stream } = preview
  const end = () => void stream.destroy()
  signal.addEventListener('abort', end, { once: true })
  stream.once('close', () => {
    signal.removeEventListener('abort', end)
    watched[Symbol.dispose]()
  })
  try {
    signal.throwIfAborted()
    const passage = passageOf(request, { port, isByHost, maskedHost: e2b.maskedHost })
    if (isWebSocket(request)) return await joinSocket(preview, request, passage, sockets)
    const response = await forward(preview, request, passage)
    if (response.status === SWITCHING_PROTOCOLS || !context.startFlow) return response
    return flowing(context, response, signal, watched)
  } catch (error) {
    stream.destroy()
    if (error instanceof HttpError) return refusal(502, `The server on port ${port}: ${error.message}.`)
    throw error
  }
}

const closedPort = (sandboxId: string, port: number): Response => {
  const message = 'The sandbox is running but port is not open'
  return Response.json({ sandboxId: toE2bId(sandboxId), message, port, code: 502 }, { status: 502 })
}
