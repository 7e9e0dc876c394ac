import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { processesNamed, tracesOf } from '../support/leftovers.ts'
import { command, patiently, startServer, temporaryDirectory } from '../support/server.ts'
import { eventsOf, readChunks, textIn, typesIn } from '../support/sse.ts'
import { until } from '../support/until.ts'
import { leaveCounter, visitCounter } from './background.ts'

patiently()

test('SIGTERM lets short runs end, interrupts long ones, and gives every reader its end', async () => {
  const graceMs = 500
  await using server = await startServer({ flags: ['--grace-ms', `${graceMs}`] })
  const sandboxId = await server.sandbox()
  const nap = `4322.${process.pid}`
  const ask = async (text: string) => {
    const response = await server.chat(text, { sandboxId })
    return { threadId: response.headers.get('x-thread-id')!, reading: readChunks(response) }
  }
  const [short, long, busy] = [await ask('/slow 3'), await ask('/slow 4000'), await ask(`$ sleep ${nap}`)]
  await until(() => processesNamed(nap).length > 0)

  const startedAt = performance.now()
  expect(await server.stop()).toBe(0)
  // Replies that it did not interrupt would go on for minutes.
  expect(performance.now() - startedAt).toBeLessThan(graceMs + 30_000)
  const closing = ['message-metadata', 'error', 'finish']
  const [complete, cut, killed] = await Promise.all([short.reading, long.reading, busy.reading])
  expect(textIn(complete)).toBe('1 2 3 ')
  expect(typesIn(complete).slice(-3)).toEqual(['text-end', 'message-metadata', 'finish'])
  expect(typesIn(cut).slice(-4)).toEqual(['text-end', ...closing])
  expect(typesIn(killed).slice(-4)).toEqual(['tool-output-error', ...closing])
  expect(cut.find(({ type }) => type === 'error').errorText).toBe('The server is shutting down.')
  expect(processesNamed(nap)).toEqual([])

  await server.start()
  const read = async ({ threadId }: { threadId: string }) => {
    const { body } = await server.ask('GET', `/v1/sandboxes/${sandboxId}/threads/${threadId}`)
    return [body.status, body.messages[1].content]
  }
  expect(await read(short)).toEqual(['completed', '1 2 3 '])
  expect(await read(long)).toEqual(['error', textIn(cut)])
  expect(await read(busy)).toEqual(['error', ''])
})

test('while it waits for runs, a server takes no new work', async () => {
  await using server = await startServer()
  const sandboxId = await server.sandbox()
  const stream = eventsOf(await server.chat('/slow 20', { sandboxId }))
  await stream.next()
  const stopping = server.stop()
  await until(async () => (await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })).status === 503)
  expect((await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })).body.error.code).toBe('shutting_down')
  expect((await Array.fromAsync(stream)).at(-1)?.data).toBe('[DONE]')
  expect(await stopping).toBe(0)
})

test.each(['SIGTERM', 'SIGINT'] as const)('%s with nothing to do ends at once', async signal => {
  await using server = await startServer({ flags: ['--grace-ms', '3600000'] })
  await server.exec(await server.sandbox(), 'true')
  process.kill(server.pid, signal)
  expect(await server.ended()).toBe(0)
})

test('jails stay through a stop, with what runs in them', async () => {
  await using server = await startServer()
  const sandboxId = await server.sandbox()
  await leaveCounter(server, sandboxId)
  expect(await visitCounter(server, sandboxId)).toBe(1)
  expect(await server.stop()).toBe(0)
  expect(tracesOf(`${server.dataDirectory}/`).join('\n')).toContain('jail.cfg')
  await server.start()
  expect(await visitCounter(server, sandboxId)).toBe(2)
})

test('a second server on one data directory is refused, and the first goes on', async () => {
  await using server = await startServer()
  const { code, stdout, stderr } = await command(['serve', '--data-dir', server.dataDirectory, '--port', '0'])
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toBe(`threadbox: --data-dir: another server runs on ${server.dataDirectory}\n`)
  expect(textIn(await readChunks(await server.chat('still here')))).toBe('still here')
})

test.each([
  {
    what: 'that is none',
    make: (path: string) => writeFileSync(path, 'not a database, but a file of this name '.repeat(100)),
    says: 'threadbox.db: file is not a database',
  },
  {
    what: 'of a newer version',
    make: (path: string) => new Database(path).run('pragma user_version = 999'),
    says: 'threadbox.db was written by a newer threadbox (schema 999',
  },
])('a database $what is refused in one line', async ({ make, says }) => {
  const dataDirectory = temporaryDirectory()
  const path = join(dataDirectory, 'threadbox.db')
  make(path)
  const { code, stdout, stderr } = await command(['serve', '--data-dir', dataDirectory, '--port', '0'])
  rmSync(dataDirectory, { recursive: true })
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toStartWith('threadbox: ')
  expect(stderr).toContain(says)
  expect(stderr.trimEnd()).not.toContain('\n')
})
