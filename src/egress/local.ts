import { readBody, requestFraming } from '../http1/body.ts'
import { write } from '../http1/byte-source.ts'
import { endToEnd, getValues, type Header, isKept, type RequestHead } from '../http1/head.ts'
import { HttpError } from '../http1/http-error.ts'
import { type ProxyClient, sendAnswer } from './proxy-client.ts'

/** Answers a request for the proxy's own address. Its signal is aborted when the program closes the connection. */
export type LocalHandler = (request: Request, environmentId: string) => Promise<Response>

/** Answers a request whose target is a path alone. Returns whether the client may send another. */
export async function answerLocally(
  client: ProxyClient,
  request: RequestHead,
  target: string,
  handle: (request: Request) => Promise<Response>,
): Promise<boolean> {
  const framing = requestFraming(request)
  if (getValues(request.headers, 'expect').some(value => value.toLowerCase() === '100-continue')) {
    await write(client.socket, 'HTTP/1.1 100 Continue\r\n\r\n')
  }
  const hasBody = framing.kind === 'chunked' || (framing.kind === 'length' && framing.bytes > 0)
  const bytes = readBody(client.source, framing)
  let isRead = !hasBody
  // A killed program closes its side: without this it would be noticed only by the answer's next bytes.
  const watch = () => {
    isRead = true
    client.source.isEnded().then(
      ended => ended && client.socket.destroy(),
      () => client.socket.destroy(),
    )
  }
  if (isRead) watch()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await bytes.next()
        if (!done) return controller.enqueue(new Uint8Array(value))
        watch()
        controller.close()
      },
    },
    { highWaterMark: 0 },
  )
  const url = URL.parse(target, 'http://proxy.threadbox')
  if (!url || /^(CONNECT|TRACE|TRACK)$/i.test(request.method)) throw new HttpError(400, 'the request is not valid')
  const response = await handle(
    new Request(url.href, {
      method: request.method,
      headers: endToEnd(request.headers).map(([name, value]): [string, string] => [name, value]),
      signal: client.signal,
      ...(hasBody && !/^(GET|HEAD)$/.test(request.method) && { body, duplex: 'half' }),
    }),
  )
  const { status, statusText, headers } = response
  const kept = endToEnd([...headers].map(([name, value]): Header => [name, value]))
  const isEmpty = request.method === 'HEAD' || response.body === null
  const length = !isEmpty ? undefined : request.method === 'HEAD' || status === 204 || status === 304 ? 'none' : 0
  const keeps = isKept(request)
  const stays = await sendAnswer(
    client,
    request,
    { status, reason: statusText, headers: kept, length },
    bodyPieces(client, response),
    keeps,
  )
  return stays && isRead
}

/** The answer's body, cancelled when the program closes the connection. */
async function* bodyPieces(client: ProxyClient, response: Response): AsyncGenerator<Buffer, void> {
  const reader = response.body?.getReader()
  if (!reader) return
  const cancel = () => void reader.cancel().catch(() => {})
  client.signal.addEventListener('abort', cancel, { once: true })
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield Buffer.from(next.value)
  } finally {
    client.signal.removeEventListener('abort', cancel)
    cancel()
  }
}
