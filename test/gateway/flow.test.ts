import { expect, test } from 'bun:test'
import { cleanUpAfterEach } from '../runs/support.ts'
import { call, gatewayScene, wireCases } from './support.ts'

cleanUpAfterEach()

const PIECE_BYTES = 64 * 1024
const PIECES = 4000

test('a reader that is slow holds the provider back', async () => {
  let produced = 0
  const source = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (produced++ === PIECES) return controller.close()
        controller.enqueue(new Uint8Array(PIECE_BYTES).fill(32))
      },
    },
    { highWaterMark: 0 },
  )
  const answer = async () => new Response(source, { headers: { 'content-type': 'text/event-stream' } })
  const { open } = gatewayScene({ fetch: Object.assign(answer, { preconnect: () => {} }) })
  const reader = (await call(open(), wireCases[0]!, 'hi')).body!.getReader()
  await reader.read()
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate)
  expect(produced).toBeLessThan(4)
  for (let read = 1; read < 10; read++) await reader.read()
  expect(produced).toBeLessThan(14)
  await reader.cancel()
})

test('a provider on the network is held back too, and memory stays bounded', async () => {
  let produced = 0
  const provider = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            if (produced++ === PIECES) return controller.close()
            controller.enqueue(new Uint8Array(PIECE_BYTES).fill(10))
          },
        }),
        { headers: { 'content-type': 'text/event-stream' } },
      ),
  })
  const toProvider = (_: unknown, init?: RequestInit) => fetch(provider.url, init)
  const { open, calls } = gatewayScene({ fetch: Object.assign(toProvider, { preconnect: () => {} }) })
  const reader = (await call(open(), wireCases[0]!, 'hi')).body!.getReader()
  await reader.read()
  // It stands still once the sockets are full: two looks apart in time that see the same.
  for (let before = -1; before !== produced; ) {
    before = produced
    for (let turn = 0; turn < 2000; turn++) await new Promise(setImmediate)
  }
  expect(produced).toBeLessThan(PIECES / 4)
  await reader.cancel()
  expect(calls()).toMatchObject([{ status: 'aborted' }])
  await provider.stop(true)
})

test('over HTTP a client that hangs up ends the call upstream', async () => {
  const { gateway, open, calls, upstream } = gatewayScene()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: request => gateway.handle(request),
  })
  const { access } = open()
  const gone = new AbortController()
  const answer = await fetch(`${server.url.origin}/gateway/anthropic/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${access.token}` },
    body: JSON.stringify({ ...wireCases[0]!.body('STALL'), stream: true }),
    signal: gone.signal,
  })
  await answer.body!.getReader().read()
  gone.abort()
  await upstream.seen[0]!.gone
  expect(calls()).toMatchObject([{ status: 'aborted' }])
  await server.stop(true)
})

test('over HTTP a client that hangs up before the answer ends the call upstream', async () => {
  const { gateway, open, calls, upstream } = gatewayScene()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: request => gateway.handle(request),
  })
  const { access } = open()
  const gone = new AbortController()
  const answer = fetch(`${server.url.origin}/gateway/anthropic/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${access.token}` },
    body: JSON.stringify({ ...wireCases[0]!.body('HANG'), stream: true }),
    signal: gone.signal,
  }).catch(() => 'gone')
  while (upstream.seen.length === 0) await new Promise(setImmediate)
  gone.abort()
  expect(await answer).toBe('gone')
  await upstream.seen[0]!.gone
  expect(calls()).toMatchObject([{ status: 'aborted' }])
  await server.stop(true)
})
