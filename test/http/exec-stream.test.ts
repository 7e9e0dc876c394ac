import { beforeAll, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { processesNamed } from '../support/leftovers.ts'
import { peakGrowth } from '../support/memory.ts'
import { startServer } from '../support/server.ts'
import { eventsOf, readChunks } from '../support/sse.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})
const stream = (command: string, fields: object = {}, signal?: AbortSignal) =>
  app.request('POST', `/v1/sandboxes/${id}/exec`, {
    body: { command, ...fields },
    headers: { accept: 'text/event-stream' },
    ...(signal && { signal }),
  })

test('stdout, stderr and exit come as events, then [DONE]', async () => {
  const response = await stream('echo out; sleep 0.05; echo err >&2; sleep 0.05; exit 3')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  expect(response.headers.get('cache-control')).toBe('no-cache, no-transform')
  expect(await readChunks(response)).toEqual([
    { type: 'stdout', data: 'out\n' },
    { type: 'stderr', data: 'err\n' },
    { type: 'exit', exitCode: 3 },
  ])
})

test('output comes while the command runs', async () => {
  const events = eventsOf(await stream('echo first; until [ -e /tmp/go ]; do sleep 0.01; done; echo second'))
  expect((await events.next()).value?.data).toEqual({ type: 'stdout', data: 'first\n' })
  await app.exec(id, 'touch /tmp/go')
  const rest = (await Array.fromAsync(events)).map(({ data }) => data)
  expect(rest).toEqual([{ type: 'stdout', data: 'second\n' }, { type: 'exit', exitCode: 0 }, '[DONE]'])
})

test('a command without output still opens the stream at once', async () => {
  const abort = new AbortController()
  const response = await stream('sleep 1000', {}, abort.signal)
  expect(response.status).toBe(200)
  abort.abort()
})

test('it is not cut, and a character that is split is whole', async () => {
  const chunks = await readChunks(
    await stream('head -c 3000000 /dev/zero | tr "\\0" x; for i in {1..2000}; do printf 漢; done'),
  )
  expect(chunks.pop()).toEqual({ type: 'exit', exitCode: 0 })
  expect(chunks.map(({ data }) => data).join('')).toBe('x'.repeat(3_000_000) + '漢'.repeat(2000))
})

test('every character comes as it was printed, wherever it is', async () => {
  const characters = Array.from({ length: 0x7f }, (_, index) => String.fromCharCode(index + 1))
  const lines = characters.flatMap((each, index) => [`${each}`, `${'x'.repeat(index % 9)}${each}é漢🎈${each}"`])
  const text = Array.from({ length: 40 }, (_, turn) => lines.slice(turn).join('')).join('')
  await app.ask('POST', `/v1/sandboxes/${id}/files`, { path: '/tmp/characters', content: text })
  const chunks = await readChunks(await stream('cat /tmp/characters'))
  expect(chunks.pop()).toEqual({ type: 'exit', exitCode: 0 })
  expect(chunks.map(({ data }) => data).join('')).toBe(text)
})

test('bytes that are not UTF-8 are marked, also the last ones', async () => {
  const chunks = await readChunks(await stream(`printf 'a\\377b\\n'; sleep 0.05; printf 'c\\346\\274'`))
  expect(chunks.pop()).toEqual({ type: 'exit', exitCode: 0 })
  expect(chunks.map(({ data }) => data).join('')).toBe('a\ufffdb\nc\ufffd')
})

test('a slow reader holds the command up, not the server’s memory', async () => {
  await using server = await startServer()
  const sandbox = await server.sandbox()
  const inside = (command: string) => server.exec(sandbox, command)
  await inside('true')
  const abort = new AbortController()
  const grown = await peakGrowth(server.pid, async () => {
    const response = await server.request('POST', `/v1/sandboxes/${sandbox}/exec`, {
      body: { command: 'yes | head -c 500000000; echo done > /tmp/written' },
      headers: { accept: 'text/event-stream' },
      signal: abort.signal,
    })
    await response.body!.getReader().read()
    await until(async () => (await inside('pgrep -x head')).exitCode === 0)
    // It stands still: what it has printed stays the same from one look to the next.
    const printed = 'grep wchar /proc/$(pgrep -x head)/io'
    await until(async () => (await inside(printed)).stdout === (await inside(`sleep 0.2; ${printed}`)).stdout)
  })
  expect(grown).toBeLessThan(64 * 1024 * 1024)
  expect((await inside('ls /tmp/written')).exitCode).not.toBe(0)
  abort.abort()
})

test('a time-out is an error event with its code', async () => {
  const chunks = await readChunks(await stream('echo before; sleep 1000', { timeoutMs: 200 }))
  expect(chunks).toEqual([
    { type: 'stdout', data: 'before\n' },
    { type: 'error', code: 'command_timeout', message: 'The command did not end within 200 ms and was killed.' },
  ])
})

test('a command that cannot be started is an error event', async () => {
  expect(await readChunks(await stream('pwd', { cwd: '/no/such' }))).toEqual([
    { type: 'error', code: 'invalid_request', message: 'cwd: no such directory: /no/such' },
  ])
})

test('bad input and unknown sandboxes are answers, not streams', async () => {
  expect((await stream('')).status).toBe(400)
  const headers = { accept: 'text/event-stream' }
  const { status, body } = await app.ask('POST', '/v1/sandboxes/none/exec', { command: 'true' }, { headers })
  expect({ status, code: body.error.code }).toEqual({ status: 404, code: 'sandbox_not_found' })
})

for (const [name, command] of [
  ['a silent command', (marker: string) => `exec -a ${marker} sleep 1000`],
  ['a command that prints', (marker: string) => `(exec -a ${marker} sleep 1000) & yes`],
  ['what fled', (marker: string) => `setsid -f bash -c 'exec -a ${marker} sleep 1000'; sleep 1000`],
] as const) {
  test(`a client that goes away takes ${name} with it`, async () => {
    const [marker, abort] = [`sleep-${crypto.randomUUID()}`, new AbortController()]
    await stream(command(marker), {}, abort.signal)
    await until(() => processesNamed(marker).length === 1)
    abort.abort()
    await until(() => processesNamed(marker).length === 0)
  })
}

test('a sandbox that is deleted ends the stream with an error event', async () => {
  const gone = await app.sandbox()
  const response = await app.request('POST', `/v1/sandboxes/${gone}/exec`, {
    body: { command: 'echo up; sleep 1000' },
    headers: { accept: 'text/event-stream' },
  })
  const events = eventsOf(response)
  await events.next()
  await app.ask('DELETE', `/v1/sandboxes/${gone}`)
  const rest = (await Array.fromAsync(events)).map(({ data }) => data)
  expect(rest).toEqual([expect.objectContaining({ type: 'error', code: 'sandbox_unavailable' }), '[DONE]'])
})
