import { afterAll, expect, test } from 'bun:test'
import { feedBody } from '../../src/http/feed-body.ts'
import type { Feed } from '../../src/stream/feed.ts'
import { until } from '../support/until.ts'

interface Counts {
  taken: number
  left: number
  ends: number
  stalls: number
}

/** A feed of pieces that a test adds to, and what became of it. */
function createFeed(given: Uint8Array[], { isOpen = false, failure }: { isOpen?: boolean; failure?: Error } = {}) {
  const counts: Counts = { taken: 0, left: 0, ends: 0, stalls: 0 }
  let wake = () => {}
  const feed: Feed = {
    take() {
      const piece = given.shift()
      if (!piece && failure) throw failure
      counts.taken += piece?.length ?? 0
      return piece
    },
    get isOver() {
      return !isOpen && given.length === 0
    },
    wait(woken) {
      wake = woken
    },
    leave: () => void counts.left++,
  }
  return { feed, counts, wake: () => wake() }
}

const served = new Map<string, ReturnType<typeof createFeed>>()
const server = Bun.serve({
  port: 0,
  idleTimeout: 0,
  development: false,
  fetch(request) {
    const { feed, counts } = served.get(new URL(request.url).pathname)!
    const flow = {
      signal: request.signal,
      turn: () => undefined,
      stalledMs: 10,
      onStalled: () => void counts.stalls++,
      onEnd: () => void counts.ends++,
    }
    return new Response(feedBody(feed, flow), { headers: { 'content-type': 'text/event-stream' } })
  },
})
afterAll(() => server.stop(true))

const get = (path: string, signal?: AbortSignal) => fetch(new URL(path, server.url), signal ? { signal } : {})

const opening = Buffer.from(': open\n\n')

test('a feed is passed on to its end, and left once', async () => {
  const made = createFeed([opening, Buffer.from('a'), Buffer.from('b')])
  served.set('/whole', made)
  expect(await (await get('/whole')).text()).toBe(': open\n\nab')
  expect(made.counts).toMatchObject({ left: 1, ends: 1, stalls: 0 })
})

test('a client hears the opening before anything else comes, and each piece when it comes', async () => {
  const pieces: Uint8Array[] = [opening]
  const made = createFeed(pieces, { isOpen: true })
  served.set('/live', made)
  const abort = new AbortController()
  const reader = (await get('/live', abort.signal)).body!.getReader()
  const hear = async () => Buffer.from((await reader.read()).value!).toString()
  expect(await hear()).toBe(': open\n\n')
  for (const piece of ['one', 'two']) {
    pieces.push(Buffer.from(piece))
    made.wake()
    expect(await hear()).toBe(piece)
  }
  abort.abort()
  await until(() => made.counts.left === 1)
  expect(made.counts).toMatchObject({ ends: 1, stalls: 0 })
  // What comes now has no reader.
  pieces.push(Buffer.from('three'))
  made.wake()
  expect(made.counts.left).toBe(1)
})

test('a feed whose rest is lost breaks the connection: it never seems whole', async () => {
  const made = createFeed([opening], { isOpen: true, failure: new Error('lost') })
  served.set('/lost', made)
  const response = get('/lost').then(answer => answer.text())
  await expect(response).rejects.toThrow()
  expect(made.counts).toMatchObject({ left: 1, ends: 1 })
})

test('a client that takes nothing has no more made for it than its connection holds, and counts as stalled', async () => {
  const MB = 1024 * 1024
  const piece = Buffer.alloc(MB / 4, 'x')
  const made = createFeed(Array.from({ length: 400 }, () => piece))
  served.set('/slow', made)
  let received = 0
  const socket = await Bun.connect({
    hostname: server.hostname ?? 'localhost',
    port: server.port!,
    socket: {
      open(opened) {
        opened.write('GET /slow HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
        opened.pause()
      },
      data(_, bytes) {
        received += bytes.length
      },
    },
  })
  await until(() => made.counts.stalls > 3)
  const held = made.counts.taken
  await until(() => made.counts.stalls > 6)
  expect(made.counts.taken).toBe(held)
  expect(held).toBeLessThan(50 * MB)
  socket.resume()
  await until(() => received > 100 * MB)
  expect(made.counts).toMatchObject({ taken: 100 * MB, left: 1, ends: 1 })
  socket.end()
})
