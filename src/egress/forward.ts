import type { Socket } from 'node:net'
import { readBody, requestFraming } from '../http1/body.ts'
import { exchange } from '../http1/exchange.ts'
import { endToEnd, formatHead, getValues, isKept, type RequestHead } from '../http1/head.ts'
import { watchIdle } from '../http1/tunnel.ts'
import { type ProxyClient, sendAnswer } from './proxy-client.ts'

/** Carries one plain HTTP request to a server and its answer back. Returns whether the client may send a next one. */
export async function forward(
  client: ProxyClient,
  request: RequestHead,
  target: { authority: string; path: string },
  upstream: Socket,
): Promise<boolean> {
  const idle = watchIdle([client.socket, upstream])
  const onGone = () => upstream.destroy()
  client.signal.addEventListener('abort', onGone, { once: true })
  const watched = async function* (body: AsyncIterable<Buffer>) {
    for await (const piece of body) {
      idle.moved()
      yield piece
    }
  }
  try {
    const framing = requestFraming(request)
    const headers = endToEnd(request.headers).filter(([name]) => name !== 'host')
    const answer = await exchange(
      upstream,
      {
        method: request.method,
        path: target.path,
        headers: [['host', target.authority], ...headers],
        framing,
        body: watched(readBody(client.source, framing)),
      },
      async head => {
        if (request.version === '1.1')
          client.socket.write(formatHead(`HTTP/1.1 ${head.status} ${head.reason}`, endToEnd(head.headers)))
      },
    )
    const { head, length, body } = answer
    const kept = endToEnd(head.headers)
    // The answer to a HEAD gives the length that a GET would have.
    if (length === 'none')
      for (const value of getValues(head.headers, 'content-length')) kept.push(['content-length', value])
    const keeps = isKept(request)
    const stays = await sendAnswer(client, request, { ...head, headers: kept, length }, watched(body), keeps)
    return stays && answer.isSent()
  } finally {
    idle.stop()
    client.signal.removeEventListener('abort', onGone)
    upstream.destroy()
  }
}
