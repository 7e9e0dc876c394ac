import { beforeAll, expect, test } from 'bun:test'
import { readdirSync, readlinkSync } from 'node:fs'
import { useApp } from '../support/app.ts'
import { openTestSandbox } from '../support/sandbox.ts'
import { eventsOf, readChunks } from '../support/sse.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
  // 6 MB of numbers: a byte that is lost, doubled or in another place changes the sum.
  await app.shell(id, 'seq 900000 >/tmp/numbers')
})

const stream = (command: string, signal?: AbortSignal) =>
  app.request('POST', `/v1/sandboxes/${id}/exec`, {
    body: { command },
    headers: { accept: 'text/event-stream' },
    ...(signal && { signal }),
  })
const numbers = Array.from({ length: 900_000 }, (_, index) => `${index + 1}\n`).join('')
const sumOf = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')

/** Pipes that this process has open. Some are Bun's own. */
const pipes = () =>
  readdirSync('/proc/self/fd').filter(number => {
    try {
      return readlinkSync(`/proc/self/fd/${number}`).startsWith('pipe:')
    } catch {
      return false
    }
  }).length

test.each([
  ['at once', 'cat /tmp/numbers'],
  ['after a while', 'sleep 0.2; cat /tmp/numbers'],
  ['in many small writes', 'sleep 0.1; stdbuf -oL cat /tmp/numbers 2>/dev/null || cat /tmp/numbers'],
  ['beside errors', 'cat /tmp/numbers & cat /tmp/numbers >&2; wait'],
])('much output that comes %s is whole', async (_, command) => {
  const chunks = await readChunks(await stream(command))
  expect(chunks.at(-1)).toEqual({ type: 'exit', exitCode: 0 })
  const of = (type: string) =>
    chunks
      .filter(chunk => chunk.type === type)
      .map(({ data }) => data)
      .join('')
  expect(sumOf(of('stdout'))).toBe(sumOf(numbers))
  if (command.includes('>&2;')) expect(sumOf(of('stderr'))).toBe(sumOf(numbers))
})

test('the collected output is cut, and its command still runs to its end', async () => {
  const result = await app.exec(id, 'sleep 0.1; cat /tmp/numbers; cat /tmp/numbers >&2; touch /tmp/ended')
  expect(result).toMatchObject({ exitCode: 0, truncated: true })
  expect(result.stdout).toBe(numbers.slice(0, 1024 * 1024))
  expect(result.stderr).toBe(numbers.slice(0, 1024 * 1024))
  expect(await app.shell(id, 'ls /tmp/ended')).toBe('/tmp/ended\n')
})

test('what a command leaves behind prints on after its end and is not stopped by it', async () => {
  const background = '(sleep 0.3; for i in $(seq 300); do head -c 10000 /dev/zero; done; touch /tmp/printed-on) & '
  const result = await app.exec(id, `${background}sleep 0.1; echo ended`)
  expect(result).toMatchObject({ stdout: 'ended\n', exitCode: 0 })
  await until(async () => (await app.shell(id, 'ls /tmp')).includes('printed-on'), 'it has printed 3 MB more')
})

test('no pipe and no process is left by commands that end, are left by their client, or fail', async () => {
  await app.exec(id, 'sleep 0.1; cat /tmp/numbers')
  const before = pipes()
  for (let round = 0; round < 10; round++) {
    await Promise.all([
      app.exec(id, 'sleep 0.05; cat /tmp/numbers'),
      app.exec(id, 'sleep 0.05; cat /tmp/numbers >&2; exit 3'),
      app.exec(id, 'sleep 0.05; exec >&- 2>&-; sleep 0.05'),
      app.exec(id, 'cat /tmp/numbers; sleep 60', { timeoutMs: 200 }),
    ])
    const abort = new AbortController()
    const events = eventsOf(await stream('while :; do cat /tmp/numbers; done', abort.signal))
    await events.next()
    abort.abort()
    await events.next().catch(() => {})
  }
  await until(() => pipes() <= before, 'the server has closed its pipes')
  await until(async () => (await app.shell(id, 'pgrep -c cat; :')) === '0\n', 'every command has ended')
  expect(app.log.filter(line => line.startsWith('error'))).toEqual([])
})

test('a sandbox that is deleted while a command prints leaves no pipe open', async () => {
  const other = await app.sandbox()
  await app.exec(other, 'true')
  const before = pipes()
  const response = await app.request('POST', `/v1/sandboxes/${other}/exec`, {
    body: { command: 'yes' },
    headers: { accept: 'text/event-stream' },
  })
  const events = eventsOf(response)
  await events.next()
  await until(() => pipes() > before, 'the server reads it')
  await app.ask('DELETE', `/v1/sandboxes/${other}`)
  for await (const _ of events);
  await until(() => pipes() <= before, 'it is closed')
})

test('a command ends whose output nobody reads, up to a bound', async () => {
  const sandbox = await openTestSandbox()
  try {
    const child = await sandbox.environment.spawn({ command: 'sleep 0.1; echo out; echo error >&2; seq 1000; exit 3' })
    expect(await child.exited).toMatchObject({ exitCode: 3 })
    expect(await new Response(child.stderr).text()).toBe('error\n')
  } finally {
    await sandbox.close()
  }
})
