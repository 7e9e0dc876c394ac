import { expect, test } from 'bun:test'
import { processesNamed } from '../support/leftovers.ts'
import { patiently, type Server, startServer } from '../support/server.ts'
import { readChunks, readEvents } from '../support/sse.ts'
import { until } from '../support/until.ts'

patiently()

async function begin(server: Server, command: string, fields: object = {}) {
  const sandboxId = await server.sandbox()
  const path = `/v1/sandboxes/${sandboxId}/processes`
  const { status, body } = await server.ask('POST', path, { command, ...fields })
  expect(status).toBe(201)
  return { sandboxId, path: `${path}/${body.pid}` }
}

test('a process and its output survive a kill -9 of the server, and are replayed from an offset', async () => {
  await using server = await startServer()
  const command = 'for i in $(seq 300); do echo line $i; sleep 0.005; done; read -r word; echo $word; exit 5'
  const { path } = await begin(server, command, { stdin: true })
  const reading = readEvents(await server.request('GET', `${path}/output`)).catch(() => [])
  await until(async () => (await server.ask('GET', path)).body.outputEnd > 500)
  await server.kill()
  await reading
  await server.start()
  await until(async () => (await server.ask('GET', path)).body.outputEnd > 1500)
  expect((await server.ask('POST', `${path}/stdin`, { data: 'heard\n' })).status).toBe(204)
  const lines = Array.from({ length: 300 }, (_, index) => `line ${index + 1}\n`).join('')
  const events = await readChunks(await server.request('GET', `${path}/output?offset=500`))
  expect(events.map(({ data = '' }) => data).join('')).toBe(`${lines}heard\n`.slice(500))
  expect(events.at(-1)).toEqual({ type: 'exit', exitCode: 5 })
})

test('a terminal survives too, and is ended by the next server', async () => {
  await using server = await startServer()
  const nap = `4331.${process.pid}`
  const { path } = await begin(server, `tty; sleep ${nap}`, { pty: true })
  await until(() => processesNamed(nap).length > 0)
  await server.kill()
  await server.start()
  const [shown] = await readChunks(await server.request('GET', `${path}/output?follow=false`))
  expect(shown).toEqual({ type: 'stdout', offset: 0, data: '/dev/pts/0\r\n' })
  expect((await server.ask('DELETE', path)).status).toBe(204)
  expect(processesNamed(nap)).toEqual([])
})

test('a sandbox is not idle while a process runs, whoever has started it, and is once it has ended', async () => {
  await using server = await startServer({ flags: ['--idle-ms', '500'] })
  const { sandboxId, path } = await begin(server, 'echo up; read -r line', { stdin: true })
  await server.kill()
  await server.start()
  const paused = () => server.stderr.includes('was idle and is paused')
  // Several looks of the housekeeping.
  await Bun.sleep(1500)
  expect(paused()).toBe(false)
  expect((await server.ask('POST', `${path}/stdin`, { data: 'end\n' })).status).toBe(204)
  await until(paused)
  // Its processes have gone with it; its files have not.
  expect((await server.ask('GET', path)).body.error.code).toBe('process_not_found')
  expect((await server.ask('DELETE', `/v1/sandboxes/${sandboxId}`)).status).toBe(204)
})
