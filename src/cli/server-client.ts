import { codeOf } from '../read/error-code.ts'
import { lines } from '../read/lines.ts'
import { type Chunk, parseChunk } from '../stream/chunk.ts'
import type { AskedCall } from './approve.ts'
import { type Given, UsageError } from './command-line.ts'

/** A client for a running server. Each call throws an Error with the server's message. */
export interface ServerClient {
  readonly url: string
  /** Sends a request. Bytes and forms are sent unchanged, objects as JSON. Throws the server's error. */
  request(method: string, path: string, body?: object): Promise<Response>
  openSocket(path: string): WebSocket
  /** Sends a message. Makes a sandbox and a thread when they are not given. */
  chat(agent: string, text: string, place?: Place): Promise<Reply>
  /** The calls of a thread that wait for a person, oldest first. */
  listAskedCalls(place: Place): Promise<AskedCall[]>
  answerAskedCall(id: string, answer: { approved: boolean; remember?: 'thread' }): Promise<void>
  /** The stream of the thread's newest run, when that is another one than `runId`. */
  follow(agent: string, place: Place, runId: string): Promise<Reply | undefined>
  /** Resolves when the thread's run has ended. */
  cancel(agent: string, place: Place): Promise<void>
  /** Undefined when the thread or its sandbox is gone. */
  findMessages(place: Place): Promise<{ role: string; content: string }[] | undefined>
}

export interface Place {
  sandboxId: string
  threadId: string
}

export interface Reply extends Place {
  runId: string
  chunks: AsyncIterable<Chunk>
}

/** A client for the server that the flags or the environment name. Throws a UsageError without a key. */
export function findServer(given: Given): ServerClient {
  const key = given.find('key') ?? process.env.THREADBOX_API_KEY
  if (!key) throw new UsageError('no API key: set THREADBOX_API_KEY')
  const asked = given.find('url')
  const url = asked ?? process.env.THREADBOX_URL ?? 'http://127.0.0.1:7070'
  if (!['http:', 'https:'].includes(URL.parse(url)?.protocol ?? ''))
    throw new UsageError(`${asked === undefined ? 'THREADBOX_URL' : '--url'}: must be a URL like http://127.0.0.1:7070`)
  return connectServer(url, key)
}

function connectServer(url: string, key: string): ServerClient {
  const authorization = `Bearer ${key}`
  const request = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const isForm = body instanceof FormData
    const isRaw = isForm || body instanceof ReadableStream
    return fetch(new URL(path, url), {
      method,
      headers: {
        ...headers,
        authorization,
        // fetch sets the type of a form, with its boundary.
        ...(!isForm && { 'content-type': isRaw ? 'application/octet-stream' : 'application/json' }),
      },
      ...(body && { body: isRaw ? body : JSON.stringify(body) }),
    }).catch(error => {
      if (isUntrusted(error)) {
        throw new Error(`the certificate of ${url} is not trusted; NODE_EXTRA_CA_CERTS=FILE names one more authority`)
      }
      throw new Error(`no server answers at ${url}; start one with: threadbox serve`)
    })
  }

  return {
    url,
    request: async (method, path, body) => accepted(await request(method, path, body)),
    openSocket: path => new WebSocket(new URL(path, url).href.replace(/^http/, 'ws'), { headers: { authorization } }),
    async chat(agent, text, place) {
      const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
      const path = `/v1/chat/${encodeURIComponent(agent)}`
      const response = await accepted(await request('POST', path, { ...place, messages: [message] }))
      return {
        sandboxId: response.headers.get('x-sandbox-id') ?? '',
        threadId: response.headers.get('x-thread-id') ?? '',
        runId: response.headers.get('x-run-id') ?? '',
        chunks: readChunks(response),
      }
    },
    async listAskedCalls({ threadId }) {
      const response = await accepted(await request('GET', `/v1/approvals?threadId=${threadId}&status=pending`))
      const { approvals } = (await response.json()) as { approvals: AskedCall[] }
      return approvals.reverse()
    },
    async answerAskedCall(id, answer) {
      await accepted(await request('POST', `/v1/approvals/${id}`, answer))
    },
    async follow(agent, place, runId) {
      const { sandboxId, threadId } = place
      const listed = await accepted(await request('GET', `/v1/runs?threadId=${threadId}&limit=1`))
      const newest = ((await listed.json()) as { runs: { id: string }[] }).runs[0]
      if (!newest || newest.id === runId) return undefined
      const path = `/v1/chat/${encodeURIComponent(agent)}/${sandboxId}/stream?threadId=${threadId}`
      // From before its first chunk: also when it has ended meanwhile.
      const response = await accepted(await request('GET', path, undefined, { 'last-event-id': `${newest.id}/0` }))
      return { ...place, runId: newest.id, chunks: readChunks(response) }
    },
    async cancel(agent, { sandboxId, threadId }) {
      const path = `/v1/chat/${encodeURIComponent(agent)}/${sandboxId}/stream?threadId=${threadId}`
      await accepted(await request('DELETE', path))
    },
    async findMessages({ sandboxId, threadId }) {
      const response = await request('GET', `/v1/sandboxes/${sandboxId}/threads/${threadId}`)
      if (response.status === 404) return undefined
      const thread = (await (await accepted(response)).json()) as { messages: { role: string; content: string }[] }
      return thread.messages
    },
  }
}

const isUntrusted = (error: unknown): boolean => /CERT|SIGNATURE|ISSUER/.test(String(codeOf(error)))

async function accepted(response: Response): Promise<Response> {
  if (response.ok) return response
  const body = (await response.json().catch(() => undefined)) as { message?: string } | undefined
  throw new Error(body?.message ?? `the server answered ${response.status}`)
}

/** The chunks of a reply's stream. */
export async function* readChunks(response: Response): AsyncGenerator<Chunk> {
  for await (const json of readEvents(response)) yield parseChunk(json)
}

/** The data of an event stream, without comments, ids and the closing sentinel. */
export async function* readEvents(response: Response): AsyncGenerator<string> {
  for await (const line of readLines(response)) {
    if (line.startsWith('data: ') && line !== 'data: [DONE]') yield line.slice('data: '.length)
  }
}

/** The lines of an answer, however long they are. */
export const readLines = (response: Response): AsyncGenerator<string, void> =>
  lines(response.body ?? new Blob().stream(), Number.POSITIVE_INFINITY)
