import { expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { streamText } from 'ai'
import { openMcpServers } from '../../plugins/ai-sdk/mcp/servers.ts'
import { startModelCall } from '../../src/gateway/model-call.ts'

const DEPTH = 200_000
const nested = `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`
const half = DEPTH / 2

/** What a server may send in place of events, at once. Parsers took minutes for line breaks, and seconds for each nested event. */
const streams: [name: string, type: string, text: string][] = [
  ['nothing but line breaks', 'text/event-stream', `data: {}\n\n${'\r'.repeat(4 * 1024 * 1024)}`],
  ['nested events', 'text/event-stream', `data: {"jsonrpc":"2.0","id":0,"result":${nested}}\n\n`.repeat(6)],
  [
    'events that are nested over many lines, behind a quote in a comment',
    'text/event-stream',
    `: "\rdata: {"type":"x","delta":${'['.repeat(half)}\r: "\rdata:${'['.repeat(half)}\rdata:${']'.repeat(DEPTH)}}\r\r`.repeat(
      6,
    ),
  ],
  ['nested events as another type', 'application/jsonl', `:"\ndata: {"type":"x","delta":${nested}}\n\n`.repeat(6)],
  ['a nested text', 'application/json', `[${`{"jsonrpc":"2.0","id":0,"result":${nested}},`.repeat(6)}0]`],
]
const MAX_MS = 10_000

const fetchOf = (type: string, text: string) => {
  const answer = () =>
    new Response(
      new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(text))
          controller.close()
        },
      }),
      { headers: { 'content-type': type } },
    )
  return Object.assign(async () => answer(), { preconnect: () => {} })
}

test.each(streams)(
  'an MCP server that sends %s does not hold the server up: regression',
  async (name, type, text) => {
    const startedAt = performance.now()
    const { notices, close } = await openMcpServers({
      options: { mcpServers: { a: { type: 'http', url: 'http://a.example/' } } },
      signal: AbortSignal.timeout(500),
      fetch: fetchOf(type, text),
    } as never)
    await close()
    if (name === 'nothing but line breaks') expect(notices).toEqual([])
    expect(performance.now() - startedAt).toBeLessThan(MAX_MS)
  },
  600_000,
)

test.each(streams)(
  'a model that sends %s does not hold the server up: regression',
  async (_, type, text) => {
    const { promise: ended, resolve } = Promise.withResolvers<string>()
    const call = startModelCall({
      provider: { name: 'p', key: 'a-key-of-the-provider' },
      route: { wire: 'anthropic', method: 'POST', metered: true },
      url: 'http://a.example/',
      headers: new Headers(),
      fetch: fetchOf(type, text),
      log: () => {},
      onEnd: ({ status }: { status: string }) => resolve(status),
    } as never)
    const startedAt = performance.now()
    const through = Object.assign(() => call.answer, { preconnect: () => {} })
    const model = createAnthropic({ apiKey: 'x', fetch: through })('claude-x')
    for await (const _ of streamText({ model, prompt: 'Go.', maxRetries: 0, onError: () => {} }).stream);
    expect(await ended).toBe('failed')
    expect(performance.now() - startedAt).toBeLessThan(MAX_MS)
  },
  600_000,
)

test.each([
  ['a byte order mark', '\uFEFF'],
  ['a byte order mark that was encoded twice', '\uFEFF\u00EF\u00BB\u00BF'],
])('a nested event of a model behind %s is refused: regression', async (_, mark) => {
  const call = startModelCall({
    provider: { name: 'p', key: 'a-key-of-the-provider' },
    route: { wire: 'anthropic', method: 'POST', metered: false },
    url: 'http://a.example/',
    headers: new Headers(),
    fetch: fetchOf('text/event-stream', `${mark}data: ${nested}\n\n`),
    log: () => {},
    onEnd: () => {},
  } as never)
  await expect((await call.answer).text()).rejects.toThrow()
})
