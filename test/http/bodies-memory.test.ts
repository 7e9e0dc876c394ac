import { expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { createMemory } from '../../src/async/shared-memory.ts'
import { bounds } from '../../src/bounds.ts'
import { createKey } from '../../src/core/access/keys.ts'
import { readBody } from '../../src/read/bytes.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { until } from '../support/until.ts'

const app = useApp()

/** The last of a body come one by one: a body of which nothing comes is given up, which a busy machine would live to see. */
const LAST_BYTES = 1000

/** A request for a sandbox that is sent but for its last bytes. */
async function allButTheLast(bytes: number): Promise<Socket> {
  const { hostname, port } = new URL(app.url)
  const socket = connect(Number(port), hostname)
  const head = [
    'POST /v1/sandboxes HTTP/1.1',
    'host: x',
    `authorization: Bearer ${app.key}`,
    `content-length: ${bytes}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  await new Promise<void>(resolve => {
    // Its own memory may be refused.
    socket.on('error', () => resolve())
    socket.write(Buffer.alloc(bytes - LAST_BYTES, ' '), () => resolve())
  })
  const trickle = setInterval(() => socket.write(' '), 500)
  socket.on('close', () => clearInterval(trickle))
  return socket
}

const large = Buffer.from(JSON.stringify({ command: 'true', x: 'x'.repeat(5_000_000) }))

test('bodies share memory: one more is 503 with Retry-After, small ones and other keys go through: regression', async () => {
  const id = await app.sandbox()
  const ask = (body: Buffer<ArrayBuffer>, key = app.key) =>
    app.ask('POST', `/v1/sandboxes/${id}/exec`, undefined, { body, key })
  const other = createKey(app.runtime.db, { team: 'default', name: 'other' }).key
  const held: Socket[] = []
  // Of these one may be refused itself, where what is asked in between has the memory: then there is one more.
  await until(async () => {
    held.push(await allButTheLast(bounds.bodyBytes))
    return held.length >= 6 && (await ask(large)).status === 503
  })
  const refused = await ask(large)
  expect(codeOf(refused)).toBe('503 server_busy')
  expect(refused.headers.get('retry-after')).toBe('1')
  expect((await ask(Buffer.from('{"command":"true"}'))).status).toBe(200)
  expect((await ask(large, other)).status).toBe(200)
  for (const socket of held) socket.destroy()
  await until(async () => (await ask(large)).status === 200)
})

test('of shared memory nobody has more than half, and all of it comes back', () => {
  const memory = createMemory({ bytes: 100, freeBytes: 10 })
  const first = memory.borrow('a')
  expect([first.grow(60), first.grow(1)]).toEqual([true, false])
  const second = memory.borrow('a')
  expect([second.grow(10), second.grow(1)]).toEqual([true, false])
  const third = memory.borrow('b')
  expect([third.grow(60), memory.borrow('c').grow(11)]).toEqual([true, false])
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  expect([second.grow(50), second.grow(1)]).toEqual([true, false])
})

test('a body of which nothing comes any more is given up', async () => {
  let isCancelled = false
  const body = new ReadableStream<Uint8Array>({
    start: controller => controller.enqueue(Buffer.from('{')),
    cancel: () => {
      isCancelled = true
    },
  })
  const request = new Request('http://x', { method: 'POST', body })
  await expect(readBody(request, 100, { stillMs: 20 })).rejects.toMatchObject({ code: 'request_timeout', status: 408 })
  await until(async () => isCancelled)
})

test('a short body of which nothing comes any more is given up too, and one that comes in parts is read', async () => {
  const first = (controller: ReadableStreamDefaultController) => controller.enqueue(Buffer.from('{'))
  const short = (body: ReadableStream<Uint8Array>) =>
    new Request('http://x', { method: 'POST', body, headers: { 'content-length': '2' } })
  const stuck = readBody(short(new ReadableStream({ start: first })), 100, { stillMs: 20 })
  await expect(stuck).rejects.toMatchObject({ code: 'request_timeout', status: 408 })
  let taken = 0
  const parts = new ReadableStream<Uint8Array>({
    start: first,
    pull(controller) {
      controller.enqueue(Buffer.from('}'))
      controller.close()
    },
  })
  expect((await readBody(short(parts), 100, { take: bytes => (taken += bytes) }))?.toString()).toBe('{}')
  expect(taken).toBe(2)
  expect(await readBody(short(new ReadableStream({ start: first })), 1)).toBeUndefined()
})

test('what was let go counts nothing more, and what is given back has room again', () => {
  const memory = createMemory({ bytes: 100 })
  const loan = memory.borrow('a')
  expect([loan.grow(50), loan.grow(1), loan.grow(-20), loan.grow(20), loan.grow(1)]).toEqual([
    true,
    false,
    true,
    true,
    false,
  ])
  loan[Symbol.dispose]()
  expect([loan.grow(-50), loan.grow(1000), memory.borrow('a').grow(50), memory.borrow('b').grow(51)]).toEqual([
    true,
    true,
    true,
    false,
  ])
})
