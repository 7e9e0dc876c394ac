export interface RequestOptions {
  /** An API key or token; null sends none. */
  key?: string | null
  /** Sent as JSON; bytes, streams and forms as they are. */
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

export interface Answer {
  status: number
  headers: Headers
  /** Its JSON, or its text. */
  body: any
}

/** `404 file_not_found`: how an error is told. */
export const codeOf = ({ status, body }: Pick<Answer, 'status' | 'body'>): string => `${status} ${body?.error?.code}`

export function send(url: string, method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const { key, body, headers = {}, signal } = options
  return fetch(url + path, {
    method,
    headers: {
      ...(key && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && !isRaw(body) && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: isRaw(body) ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
    redirect: 'manual',
    // A test's server with TLS has its own certificate.
    tls: { rejectUnauthorized: false },
  })
}

export async function ask(url: string, method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
  const response = await send(url, method, path, options)
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: parse(text) }
}

/** What a socket answers to these very bytes: `fetch` would tidy them up first. The request must say `connection: close`. */
export async function askRaw(url: string, request: string): Promise<Answer> {
  const { hostname, port } = new URL(url)
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const chunks: Buffer[] = []
  await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: socket => void socket.write(request),
      data: (_, chunk) => void chunks.push(chunk),
      close: () => resolve(Buffer.concat(chunks).toString()),
      error: (_, error) => reject(error),
    },
  })
  const [head = '', body = ''] = (await promise).split(/\r\n\r\n(.*)/s)
  const [statusLine = '', ...lines] = head.split('\r\n')
  const headers = new Headers(lines.map(line => line.split(/: ?(.*)/).slice(0, 2) as [string, string]))
  return { status: Number(statusLine.split(' ')[1]), headers, body: parse(body) }
}

type Raw = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | Blob | FormData

const isRaw = (body: unknown): body is Raw =>
  body instanceof Uint8Array || body instanceof ReadableStream || body instanceof Blob || body instanceof FormData

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
