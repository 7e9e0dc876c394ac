import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { executable, patiently, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

/** Sends one GET on a connection of its own and reads its answer no further than `isReader` says. */
function get(server: Server, path: string, isReader: boolean): { socket: Socket; head: Promise<string> } {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.key}\r\n\r\n`)
  const head = new Promise<string>(resolve => {
    socket.once('data', bytes => {
      if (!isReader) socket.pause()
      resolve(bytes.toString('latin1'))
    })
  })
  if (isReader) socket.resume()
  return { socket, head }
}

test('readers of a noisy process, whether they read or not, keep nobody from being answered: regression', async () => {
  await using server = await startServer({ flags: ['--requests-per-key', '150'] })
  const id = await server.sandbox()
  const noisy = await server.ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'yes' })
  const path = `/v1/sandboxes/${id}/processes/${noisy.body.pid}/output`
  const readers = Array.from({ length: 140 }, (_, index) => get(server, path, index % 2 === 0))
  expect(await Promise.all(readers.map(async ({ head }) => (await head).slice(9, 12)))).toEqual(Array(140).fill('200'))

  // A server that reads out a noisy process first takes for ever.
  for (let count = 0; count < 10; count++) expect((await server.exec(id, 'echo 1')).stdout).toBe('1\n')

  const more = Array.from({ length: 20 }, () => get(server, path, true))
  const answers = await Promise.all(more.map(({ head }) => head))
  expect(answers.filter(head => head.includes(' 429 ') && /retry-after: 1/i.test(head)).length).toBe(10)
  for (const { socket } of [...readers, ...more]) socket.destroy()
  await until(async () => (await server.ask('GET', '/v1/sandboxes')).status === 200)
})

test('the server may open as many files as its hard limit says, and finds out who is gone', async () => {
  await using server = await startServer({ command: ['sh', '-c', 'ulimit -Sn 256; exec "$0" "$@"', executable] })
  const [, soft, hard] = /Max open files +(\d+) +(\d+)/.exec(readFileSync(`/proc/${server.pid}/limits`, 'utf8')) ?? []
  expect(Number(soft)).toBe(Number(hard))
  const { socket, head } = get(server, '/v1/sandboxes', true)
  await head
  // Its timer of kind 2 is that of keep-alive, where no byte is on its way.
  const port = `:${Number(new URL(server.url).port).toString(16).toUpperCase().padStart(4, '0')}`
  const timers = () =>
    readFileSync('/proc/net/tcp', 'latin1')
      .split('\n')
      .map(line => line.trim().split(/\s+/))
      .filter(([, local = '', , state]) => local.endsWith(port) && state === '01')
      .map(row => row[5]?.slice(0, 2))
  await until(() => timers().includes('02'))
  socket.destroy()
})
