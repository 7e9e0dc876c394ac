import { EventSourceParserStream } from '@ai-sdk/provider-utils'
import { withoutEndSlashes } from './end-slashes.ts'
import { errorOf } from './error.ts'

/** A credential, or a function that returns a fresh one for each request. */
export type Credential = string | (() => string | PromiseLike<string>)

export interface ServerSettings {
  /** The server's address, such as `https://threadbox.example.com`. */
  baseUrl: string
  /** An API key, or a browser's token. */
  credential: Credential
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch | undefined
}

export interface Ask {
  /** Sent as JSON. */
  body?: unknown
  /** Sent unchanged. */
  bytes?: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
  headers?: Record<string, string> | undefined
  signal?: AbortSignal | undefined
}

/** The API of one server. Each call rejects with a ThreadboxError unless the status is 2xx. */
export interface Server {
  readonly baseUrl: string
  request(method: string, path: string, ask?: Ask): Promise<Response>
  json<Answer>(method: string, path: string, ask?: Ask): Promise<Answer>
}

export function createServer({ baseUrl, credential, fetch: given }: ServerSettings): Server {
  const base = withoutEndSlashes(baseUrl).replace(/\/v1$/, '')
  const request: Server['request'] = async (method, path, { body, bytes, headers, signal } = {}) => {
    const key = typeof credential === 'string' ? credential : await credential()
    const init: RequestInit & { duplex?: 'half' } = {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(bytes !== undefined && { 'content-type': 'application/octet-stream' }),
        ...headers,
        authorization: `Bearer ${key}`,
      },
      ...(signal && { signal }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(bytes !== undefined && { body: bytes }),
      // Node sends a stream only when told that the answer comes after the request's end.
      ...(bytes instanceof ReadableStream && { duplex: 'half' as const }),
    }
    const response = await (given ?? fetch)(`${base}/v1${path}`, init)
    if (!response.ok) throw await errorOf(response)
    return response
  }
  return {
    baseUrl: base,
    request,
    async json<Answer>(method: string, path: string, ask?: Ask) {
      const response = await request(method, path, ask)
      return (await response.json()) as Answer
    },
  }
}

export interface ServerEvent {
  id?: string | undefined
  data: string
}

/** Decodes UTF-8. The types of TextDecoderStream differ between Node and the DOM, so that this uses TextDecoder. */
function decodeText(): TransformStream<Uint8Array, string> {
  const decoder = new TextDecoder()
  return new TransformStream({
    transform: (bytes, output) => output.enqueue(decoder.decode(bytes, { stream: true })),
    flush: output => output.enqueue(decoder.decode()),
  })
}

/** Yields the server-sent events of an answer as they come. Ending the iteration closes the connection. */
export async function* eventsOf(response: Response): AsyncGenerator<ServerEvent, void> {
  if (!response.body) return
  const reader = response.body.pipeThrough(decodeText()).pipeThrough(new EventSourceParserStream()).getReader()
  let isAtEnd = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      isAtEnd = done
      if (done) return
      yield { id: value.id, data: value.data }
    }
  } finally {
    if (!isAtEnd) await reader.cancel().catch(() => {})
  }
}
