import { expect, test } from 'bun:test'
import { insertChunks } from '../../src/db/chunks.ts'
import { deleteLogPages, findLogPage, replaceChunks } from '../../src/db/log-pages.ts'
import { insertRun } from '../../src/db/runs.ts'
import { deleteThread, insertThread } from '../../src/db/threads.ts'
import { addSandbox, cleanUpAfterEach, openTemporary } from '../runs/support.ts'

cleanUpAfterEach()

const KEPT = { before: '2000', limit: 100 }

/** A run whose chunks were put away as pages of these sizes, one chunk in each. */
function scene(sizes: readonly number[]) {
  const db = openTemporary()
  const sandbox = addSandbox(db)
  const thread = insertThread(db, { sandboxId: sandbox.id })
  const ids = { id: 'run_1', threadId: thread.id, sandboxId: sandbox.id, messageId: null }
  insertRun(db, { ...ids, profile: 'contract', background: false, model: 'echo' })
  insertChunks(
    db,
    'run_1',
    1,
    sizes.map(() => '{}'),
  )
  for (const [index, size] of sizes.entries())
    replaceChunks(db, 'run_1', { lastSeq: index + 1, chunks: new Uint8Array(size) })
  const left = () => {
    const found: number[] = []
    for (let page = findLogPage(db, 'run_1', 0); page; page = findLogPage(db, 'run_1', page.lastSeq))
      found.push(page.lastSeq)
    return found
  }
  return { db, thread, left }
}

test('of logs that are more than all may have, the newest stay', () => {
  const { db, left } = scene([100, 50, 50])
  expect(deleteLogPages(db, { ...KEPT, mostBytes: 200 })).toBe(0)
  expect(deleteLogPages(db, { ...KEPT, mostBytes: 100 })).toBe(1)
  expect(left()).toEqual([2, 3])
  expect(deleteLogPages(db, { ...KEPT, mostBytes: 99 })).toBe(1)
  expect(left()).toEqual([3])
})

test('old logs go, so many at a time', () => {
  const { db, left } = scene([1, 1, 1])
  expect(deleteLogPages(db, { before: '9999', mostBytes: 100, limit: 2 })).toBe(2)
  expect(left()).toEqual([3])
})

test('a run that is gone is not put away', () => {
  const { db, thread } = scene([1])
  deleteThread(db, thread.id)
  replaceChunks(db, 'run_1', { lastSeq: 2, chunks: new Uint8Array(1) })
  expect(db.query('select count(*) as count from log_pages').get()).toEqual({ count: 0 })
})
