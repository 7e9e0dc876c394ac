import { expect, test } from 'bun:test'
import { insertChunks } from '../../src/db/chunks.ts'
import { insertRun } from '../../src/db/runs.ts'
import { openStoredLog } from '../../src/runs/log.ts'
import { createPageCache } from '../../src/runs/page-cache.ts'
import { frame } from '../../src/stream/frame.ts'
import { projectJson, type StreamProfile } from '../../src/stream/project.ts'
import { cleanUpAfterEach, scene } from './support.ts'

cleanUpAfterEach()

const runId = 'run_01234567-89ab-cdef-0123-456789abcdef'
const PROFILES: readonly StreamProfile[] = ['contract', 'full', 'ai-7']

/** Stores a log, and returns its database. */
function store(chunks: readonly object[]) {
  const { db, init } = scene()
  const { threadId, sandboxId } = init
  insertRun(db, { id: runId, threadId, sandboxId, messageId: 'msg_1', profile: 'full', background: false, model: 'm' })
  insertChunks(
    db,
    runId,
    1,
    chunks.map(chunk => JSON.stringify(chunk)),
  )
  return db
}

function pagesOf(db: ReturnType<typeof store>, profile: StreamProfile, after: number) {
  const log = openStoredLog({ db, pages: createPageCache() }, { runId, profile })
  const pages: Uint8Array[] = []
  for (let page = log.read(after); page; page = log.read(page.last)) pages.push(page.bytes)
  return pages
}

const approvals = [
  { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
  { type: 'tool-approval-response', approvalId: 'a', approved: true },
]

/** One of each type that a log may have; `text`: in its longest field. */
const oneOfEach = (text: string) => [
  { type: 'start', messageId: 'msg_1' },
  { type: 'start-step' },
  ...['text', 'reasoning'].flatMap(kind => [
    { type: `${kind}-start`, id: '1' },
    { type: `${kind}-delta`, id: '1', delta: text },
    { type: `${kind}-end`, id: '1' },
  ]),
  { type: 'tool-input-start', toolCallId: 'c', toolName: 'Bash' },
  { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: text },
  { type: 'tool-input-available', toolCallId: 'c', toolName: 'Bash', input: { text } },
  ...approvals,
  { type: 'tool-output-available', toolCallId: 'c', output: text },
  { type: 'tool-output-error', toolCallId: 'c', errorText: text },
  { type: 'tool-output-denied', toolCallId: 'c' },
  { type: 'file', mediaType: 'image/png', url: text },
  { type: 'source-url', sourceId: 's', url: text },
  { type: 'steering-message', id: 'm', parts: [{ type: 'text', text }] },
  { type: 'data-tool-begin', data: text, transient: true },
  { type: 'data-notice', data: { text }, transient: true },
  { type: 'data-chart', id: 'd', data: { text } },
  { type: 'message-metadata', messageMetadata: {} },
  { type: 'error', errorText: text },
  { type: 'abort', reason: text },
  { type: 'finish', finishReason: 'stop' },
]

test('a stored log is read as each of its chunks by itself, in every profile and from every place', () => {
  const texts = ['a', 'ü – 🎉 \u0000 \n "', 'x'.repeat(511), 'long '.repeat(500)]
  const deltas = Array.from({ length: 700 }, (_, index) => ({ type: 'text-delta', id: '1', delta: `${index} ü` }))
  const chunks = [...texts.flatMap(oneOfEach), ...deltas, ...oneOfEach('b')]
  const db = store(chunks)
  for (const profile of PROFILES) {
    const frames = chunks.map((chunk, index) => {
      const json = projectJson(JSON.stringify(chunk), profile)
      return json === undefined ? '' : Buffer.from(frame(runId, index + 1, json)).toString()
    })
    for (let after = 0; after < chunks.length; after += after < 120 ? 1 : 97) {
      const read = Buffer.concat(pagesOf(db, profile, after)).toString()
      expect(read).toBe(frames.slice(after).join(''))
    }
  }
})

test('a page is bounded by its bytes', () => {
  const texts = [...Array(600).fill('x'.repeat(400)), ...Array(40).fill('y'.repeat(100_000)), 'z'.repeat(1_000_000)]
  const db = store(texts.map(delta => ({ type: 'text-delta', id: '1', delta })))
  const sizes = pagesOf(db, 'contract', 0).map(({ length }) => length)
  expect(sizes.length).toBeGreaterThan(10)
  // What is left of 512 short chunks, and as many long ones as it takes to be more than 256 KB.
  expect(Math.max(...sizes.slice(0, -1))).toBeLessThan(700_000)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(5_000_000)
})

test('readers of the same log share its pages, wherever they began', () => {
  const db = store(Array.from({ length: 3000 }, (_, index) => ({ type: 'text-delta', id: '1', delta: `${index}` })))
  const log = openStoredLog({ db, pages: createPageCache() }, { runId, profile: 'contract' })
  const read = (after: number) => {
    const pages: Uint8Array[] = []
    for (let page = log.read(after); page; page = log.read(page.last)) pages.push(page.bytes)
    return pages
  }
  const [whole, middle] = [read(0), read(700)]
  expect(Buffer.concat(whole).toString()).toEndWith(Buffer.concat(middle).toString())
  expect(middle.slice(1).every(bytes => whole.includes(bytes))).toBe(true)
  expect(middle.slice(1).length).toBe(4)
})

test('the cache of pages holds no more than its bytes, keeps what is used, and drops what is not', () => {
  const cache = createPageCache(1000)
  const page = (last: number) => ({ bytes: new Uint8Array(100), last })
  cache.keep('used', page(0))
  for (let index = 1; index <= 100; index++) {
    cache.keep(`${index}`, page(index))
    expect(cache.find('used')).toBeDefined()
  }
  const held = Array.from({ length: 100 }, (_, index) => cache.find(`${index + 1}`)).filter(Boolean)
  expect(held.length).toBeLessThanOrEqual(10)
  cache.keep('large', { bytes: new Uint8Array(501), last: 1 })
  expect(cache.find('large')).toBeUndefined()
  cache.keep('last', page(1))
  cache.age()
  expect(cache.find('last')).toBeDefined()
  cache.age()
  cache.age()
  expect(cache.find('last')).toBeUndefined()
})
