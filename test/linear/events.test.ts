import { expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { streamText } from 'ai'
import { openMcpServers } from '../../plugins/ai-sdk/mcp/servers.ts'
import { startModelCall } from '../../src/gateway/model-call.ts'

/** What a server may send in place of events, at once. The parser took minutes for it. */
const breaks = new TextEncoder().encode(`data: {}\n\n${'\r'.repeat(4 * 1024 * 1024)}`)
const MAX_MS = 10_000

const answer = () =>
  new Response(
    new ReadableStream({
      start(controller) {
        controller.enqueue(breaks)
        controller.close()
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  )
const fetchBreaks = Object.assign(async () => answer(), { preconnect: () => {} })

test('an MCP server that sends nothing but line breaks does not hold the server up: regression', async () => {
  const startedAt = performance.now()
  const { notices, close } = await openMcpServers({
    options: { mcpServers: { a: { type: 'http', url: 'http://a.example/' } } },
    signal: AbortSignal.timeout(500),
    fetch: fetchBreaks,
  } as never)
  await close()
  expect(notices).toEqual([])
  expect(performance.now() - startedAt).toBeLessThan(MAX_MS)
}, 600_000)

test('a model that sends nothing but line breaks does not hold the server up: regression', async () => {
  const { promise: ended, resolve } = Promise.withResolvers<string>()
  const call = startModelCall({
    provider: { name: 'p', key: 'a-key-of-the-provider' },
    route: { wire: 'anthropic', method: 'POST' },
    url: 'http://a.example/',
    headers: new Headers(),
    fetch: fetchBreaks,
    log: () => {},
    onEnd: ({ status }: { status: string }) => resolve(status),
  } as never)
  const startedAt = performance.now()
  const through = Object.assign(() => call.answer, { preconnect: () => {} })
  const model = createAnthropic({ apiKey: 'x', fetch: through })('claude-x')
  for await (const _ of streamText({ model, prompt: 'Go.', maxRetries: 0, onError: () => {} }).stream);
  expect(await ended).toBe('failed')
  expect(performance.now() - startedAt).toBeLessThan(MAX_MS)
}, 600_000)
