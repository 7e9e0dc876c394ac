import type { Runtime } from '../../core/runtime.ts'
import { ApiError } from '../../errors.ts'
import { eventStreamHeaders } from '../../stream/frame.ts'
import { readJson } from '../body.ts'
import { getCaller } from '../caller.ts'
import { takeFlow } from '../context.ts'
import { wantsEvents } from '../event-answer.ts'
import { isSameOrigin } from '../session-cookie.ts'
import { writtenBody } from '../written-body.ts'
import { answerRequest, callTool, getTool, inForm } from './answer.ts'
import type { Ask } from './ask.ts'
import { type Calls, createCalls, type Session } from './calls.ts'
import type { InsideOf } from './inside.ts'
import { errorMessage, isId, type Message, RpcError, readMessage, resultMessage, rpcCodes } from './messages.ts'
import { createProgress, type Send } from './progress.ts'
import { type Revision, readRevision } from './revisions.ts'
import { writeMessages } from './stream.ts'

const SESSION = 'mcp-session-id'
/** The form of a session's id. The server gives out ids but does not remember them. */
const SESSION_ID = /^[\x21-\x7e]{1,100}$/
const MAX_BATCH = 50

export interface McpParts {
  runtime: Runtime
  /** Makes the function by which tools send requests to the API as the caller of this request. */
  insideOf: InsideOf
}

/** Answers requests of clients of the Model Context Protocol, by its transport "streamable HTTP". */
export interface Mcp {
  post(request: Request): Promise<Response>
  /** Ends the calls of a session. */
  end(request: Request): Response
}

export function createMcp({ runtime, insideOf }: McpParts): Mcp {
  const calls = createCalls()
  const { config, log } = runtime

  async function post(request: Request): Promise<Response> {
    assertOrigin(request, config)
    try {
      const body = await readMessages(request)
      if (Array.isArray(body)) return await answerBatch(request, body)
      const message = readMessage(body)
      const revision = readRevision(request.headers, message)
      const session = sessionOf(request)
      if (message?.id === undefined) {
        if (message) note(calls, session, message)
        return new Response(null, { status: 202 })
      }
      const asked = { message, id: message.id, revision, session, ask: insideOf(request) }
      if (message.method === 'tools/call') return await answerCall(request, asked)
      const result = inForm(answerRequest(message, revision), revision)
      const headers = message.method === 'initialize' ? { [SESSION]: crypto.randomUUID() } : undefined
      return Response.json(resultMessage(message.id, result), headers && { headers })
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      return Response.json(errorMessage(undefined, error), { status: error.status })
    }
  }

  async function answerCall(request: Request, asked: Asked): Promise<Response> {
    const { message, id } = asked
    let tool: ReturnType<typeof getTool>
    try {
      tool = getTool(message)
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      return Response.json(errorMessage(id, error))
    }
    if (!tool.isLong || !wantsEvents(request)) return Response.json(await reply(asked, request.signal, () => {}))
    const body = writtenBody(takeFlow(request), to => writeMessages(to, send => reply(asked, to.signal, send)))
    return new Response(body, { headers: eventStreamHeaders })
  }

  /** Makes the answer to a request. A cancelled call has one too, which nobody may read. */
  async function reply(asked: Asked, gone: AbortSignal, send: Send): Promise<object> {
    const { message, id, revision, session, ask } = asked
    const abort = new AbortController()
    const cancel = () => abort.abort(new Error('the call is cancelled'))
    const signal = AbortSignal.any([gone, abort.signal])
    using _ = calls.begin({ ...session, id }, cancel)
    using progress = createProgress(message, send)
    try {
      if (message.method !== 'tools/call') return resultMessage(id, inForm(answerRequest(message, revision), revision))
      const result = await callTool(getTool(message), message, { ask, signal, tell: progress.tell }, log)
      return resultMessage(id, inForm(result, revision))
    } catch (error) {
      if (error instanceof RpcError) return errorMessage(id, error)
      if (!signal.aborted) throw error
      return errorMessage(id, new RpcError(rpcCodes.internal, 'The call was cancelled.'))
    }
  }

  /** Clients of older revisions send several messages in one request. */
  async function answerBatch(request: Request, values: readonly unknown[]): Promise<Response> {
    const wrong = (what: string) => new RpcError(rpcCodes.invalidRequest, what, { status: 400 })
    const revision = readRevision(request.headers, undefined)
    if (!revision.hasBatches) throw wrong('This revision of the protocol has one message a request.')
    if (values.length === 0 || values.length > MAX_BATCH) throw wrong(`A batch has 1 to ${MAX_BATCH} messages.`)
    const messages = values.map(readMessage).filter(message => message !== undefined)
    const session = sessionOf(request)
    const ask = insideOf(request)
    for (const message of messages) if (message.id === undefined) note(calls, session, message)
    const answers: object[] = []
    // One after the other, so that a batch does no more at once than another request.
    for (const message of messages) {
      const { id } = message
      if (id !== undefined) answers.push(await reply({ message, id, revision, session, ask }, request.signal, () => {}))
    }
    return answers.length > 0 ? Response.json(answers) : new Response(null, { status: 202 })
  }

  return {
    post,
    end(request) {
      assertOrigin(request, config)
      calls.cancelAll(sessionOf(request))
      return new Response(null, { status: 204 })
    },
  }
}

interface Asked {
  message: Message
  id: string | number
  revision: Revision
  session: Session
  ask: Ask
}

/** Throws RpcError for a body that is not JSON, and what `readJson` throws. */
async function readMessages(request: Request): Promise<unknown> {
  try {
    return await readJson(request)
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'invalid_request')) throw error
    throw new RpcError(rpcCodes.parse, error.message, { status: 400 })
  }
}

function sessionOf(request: Request): Session {
  const { keyId, teamId, tokenId, sessionId: browser } = getCaller(request)
  const given = request.headers.get(SESSION)
  if (given !== null && !SESSION_ID.test(given))
    throw new ApiError('invalid_request', 'Mcp-Session-Id: must have 1 to 100 visible characters', { field: SESSION })
  return { caller: JSON.stringify([teamId, keyId, tokenId, browser]), sessionId: given ?? undefined }
}

function note(calls: Calls, session: Session, { method, params }: Message): void {
  const id = params?.requestId
  if (method === 'notifications/cancelled' && isId(id)) calls.cancel({ ...session, id })
}

/** A page of an origin that the operator does not allow to read this server's answers may not call tools either. */
function assertOrigin(request: Request, { origins, publicUrl }: Runtime['config']): void {
  const origin = request.headers.get('origin')
  if (origin === null || !origins || origins.includes(origin) || isSameOrigin(request, publicUrl)) return
  throw new ApiError('forbidden', 'Pages of this origin may not use this server.')
}
