import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { patiently, startServer, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'
import { leaveCounter, visitCounter } from './background.ts'

/** A server whose event loop stands still: nothing that a caller can send does that, so an engine does it. */

patiently()

const LIMIT_MS = 3000
let directory = ''
let flags: string[] = []
beforeAll(() => {
  directory = temporaryDirectory()
  const plugin = join(directory, 'stuck.ts')
  writeFileSync(
    plugin,
    `export default {
      name: 'stuck',
      engine: () => ({
        name: 'stuck',
        async *run({ prompt }) {
          const { text } = prompt.at(-1).parts[0]
          for (const until = performance.now() + Number(text); performance.now() < until; );
          yield { type: 'text', id: 'a', delta: 'over' }
          return { status: 'completed' }
        },
      }),
    }`,
  )
  const agents = join(directory, 'agents')
  mkdirSync(agents)
  writeFileSync(join(agents, 'stuck.json'), JSON.stringify({ slug: 'stuck', engine: 'stuck' }))
  flags = ['--plugin', plugin, '--agents', agents, '--watchdog-ms', `${LIMIT_MS}`]
})
afterAll(() => rmSync(directory, { recursive: true }))

const chat = (text: string, sandboxId: string) => ({
  body: { sandboxId, messages: [{ role: 'user', parts: [{ type: 'text', text }] }] },
})

test('a server that stands still says where and ends; started again, its jails go on', async () => {
  await using server = await startServer({ flags })
  const sandboxId = await server.sandbox({ agent: 'stuck' })
  await leaveCounter(server, sandboxId)
  expect(await visitCounter(server, sandboxId)).toBe(1)
  const asked = server.request('POST', '/v1/chat/stuck', chat('Infinity', sandboxId)).then(response => response.text())
  asked.catch(() => {})
  expect(await server.ended()).toBe(70)
  expect(server.stderr).toMatch(
    /threadbox: the event loop has stood still for 3 s: the server ends, to be started again\. Begun last: run_[0-9a-f-]{36} by stuck; before it POST \/v1\/chat\/stuck; before it .*\. Its thread is in state R.* and took \d+ ms of a CPU since\.\n$/,
  )
  await server.start()
  expect(await visitCounter(server, sandboxId)).toBe(2)
})

test('one that is only held up goes on, and says how long it was', async () => {
  await using server = await startServer({ flags })
  const sandboxId = await server.sandbox({ agent: 'stuck' })
  const heldMs = LIMIT_MS / 3
  const answer = await server.request('POST', '/v1/chat/stuck', chat(`${heldMs}`, sandboxId))
  expect(await answer.text()).toContain('over')
  const { status, body } = await server.ask('GET', '/health', undefined, { key: '' })
  expect([status, body.status]).toEqual([200, 'ok'])
  const { p50, p99, max } = body.eventLoopDelayMs
  // A beat that was due in between tells of all that was left.
  expect(max).toBeGreaterThan(heldMs / 2)
  expect([p50 <= p99, p99 <= max, p50 < max]).toEqual([true, true, true])
})

test('one that was stopped as a whole goes on', async () => {
  await using server = await startServer({ flags })
  process.kill(server.pid, 'SIGSTOP')
  // Time is what it is about: longer than the limit.
  await Bun.sleep(2 * LIMIT_MS)
  process.kill(server.pid, 'SIGCONT')
  let answers = 0
  await until(async () => {
    expect((await server.ask('GET', '/health')).status).toBe(200)
    await Bun.sleep(LIMIT_MS / 4)
    return ++answers > 8
  })
})

test('systemd is told that it is ready, that it goes on, and that it stops', async () => {
  const socket = join(directory, 'notify')
  const told = Bun.spawn(
    [
      'python3',
      '-uc',
      `import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(${JSON.stringify(socket)})
print('bound')
while True:
    text = s.recv(4096).decode()
    print(text)
    if text == 'STOPPING=1': break`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  let text = ''
  const reading = (async () => {
    const decoder = new TextDecoder()
    for await (const bytes of told.stdout) text += decoder.decode(bytes)
  })()
  await until(() => text.includes('bound\n'))
  const server = await startServer({ env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '900000' } })
  try {
    // Nothing that the server starts is to speak in its name.
    const sandboxId = await server.sandbox()
    expect((await server.exec(sandboxId, 'env')).stdout).not.toMatch(/NOTIFY_SOCKET|WATCHDOG/)
    await until(() => text.split('WATCHDOG=1\n').length > 5)
  } finally {
    await server.close()
  }
  await reading
  expect(text).toMatch(/^bound\n(WATCHDOG=1\n)*READY=1\n(WATCHDOG=1\n)+STOPPING=1\n$/)
})
