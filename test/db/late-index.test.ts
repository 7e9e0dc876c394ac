import type { Database } from 'bun:sqlite'
import { expect, spyOn, test } from 'bun:test'
import { cutBranch, listBranches, showBranch } from '../../src/db/branches.ts'
import { findThreads } from '../../src/db/find-threads.ts'
import { indexInSteps } from '../../src/db/late-index.ts'
import { appendMessages, copyMessages } from '../../src/db/messages.ts'
import { insertThread } from '../../src/db/threads.ts'
import { addSandbox, cleanUpAfterEach, openTemporary, temporaryPath } from '../runs/support.ts'
import { until } from '../support/until.ts'

cleanUpAfterEach()

/** More than two steps index. */
const COUNT = 3000
const bounds = { branches: 100, bytes: Number.MAX_SAFE_INTEGER }

/** A thread with many messages, each with a word of its own. */
function addThread(db: Database) {
  const { id: sandboxId, teamId } = addSandbox(db)
  const { id } = insertThread(db, { sandboxId })
  const words = Array.from({ length: COUNT }, (_, index) => ({
    ...{ id: `m${index}`, role: 'user' as const, parts: [{ type: 'text', text: `said w${index}` }] },
  }))
  appendMessages(db, id, words)
  const find = async (word: string) =>
    (await findThreads(db, { teamId, limit: 10, words: [word] })).map(each => each.id)
  return { id, sandboxId, find }
}

const countLeft = (db: Database) =>
  db
    .query<{ count: number }, []>(
      'select (select count(*) from search_added) + (select count(*) from search_removed) as count',
    )
    .get()?.count ?? 0

/** Does work on a clock that goes on by so much each time it is read: the first step indexes all at 0, and nothing at 1000. */
function onClock(goesOnMs: number, work: () => void) {
  let nowMs = 0
  const clock = spyOn(performance, 'now').mockImplementation(() => {
    nowMs += goesOnMs
    return nowMs
  })
  try {
    work()
  } finally {
    clock.mockRestore()
  }
}

/** What a server does, until nothing is left. */
async function index(db: Database) {
  const failures: unknown[] = []
  using _ = indexInSteps(db, error => failures.push(error))
  await until(() => countLeft(db) === 0)
  expect(failures).toEqual([])
}

test('many messages that are copied are found later, also after a crash before that', async () => {
  const path = temporaryPath()
  const db = openTemporary(path)
  const { id, sandboxId, find } = addThread(db)
  const fork = insertThread(db, { sandboxId })
  onClock(1000, () => copyMessages(db, id, COUNT, fork.id))
  expect(countLeft(db)).toBe(COUNT)
  expect(db.query('select count(*) as count from messages where thread_id = ?').get(fork.id)).toEqual({ count: COUNT })
  const later = openTemporary(path)
  expect(countLeft(later)).toBe(countLeft(db))
  await index(later)
  for (const word of ['w0', `w${COUNT / 2}`, `w${COUNT - 1}`]) expect(await find(word)).toEqual([fork.id, id])
})

test('the event loop runs between the steps, and a step that is interrupted is done later', async () => {
  const db = openTemporary()
  const { id, sandboxId } = addThread(db)
  const fork = insertThread(db, { sandboxId })
  onClock(1000, () => copyMessages(db, id, COUNT, fork.id))
  const failures: unknown[] = []
  const left = new Set<number>()
  {
    using _ = indexInSteps(db, error => failures.push(error))
    // A timer is between two steps, so that this turn of the event loop sees each of them.
    while (left.add(countLeft(db)).size < 3) await new Promise(setImmediate)
  }
  expect(countLeft(db)).toBeGreaterThan(0)
  await index(db)
  expect(failures).toEqual([])
})

test('a thread that shows another branch is found by what it shows', async () => {
  const db = openTemporary()
  const { id, find } = addThread(db)
  cutBranch(db, id, 'm10', bounds)
  await index(db)
  expect([await find('w9'), await find('w10'), await find(`w${COUNT - 1}`)]).toEqual([[id], [], []])
  showBranch(
    db,
    id,
    listBranches(db, id).filter(({ isActive }) => !isActive),
  )
  // Moved away and back before it had a place.
  cutBranch(db, id, 'm20', bounds)
  showBranch(
    db,
    id,
    listBranches(db, id).filter(({ isActive }) => !isActive),
  )
  await index(db)
  expect([await find('w9'), await find('w10'), await find(`w${COUNT - 1}`)]).toEqual([[id], [id], [id]])
})

test('a few messages are found at once', async () => {
  const db = openTemporary()
  const { id, sandboxId, find } = addThread(db)
  const fork = insertThread(db, { sandboxId })
  onClock(0, () => copyMessages(db, id, 3, fork.id))
  expect([countLeft(db), await find('w2')]).toEqual([0, [fork.id, id]])
})

test('a thread that gets the number of one that was deleted keeps its places', async () => {
  const db = openTemporary()
  const { id, sandboxId, find } = addThread(db)
  onClock(1000, () => cutBranch(db, id, 'm0', bounds))
  expect(countLeft(db)).toBe(COUNT)
  db.query('delete from threads where id = ?').run(id)
  const next = insertThread(db, { sandboxId })
  const messages = Array.from({ length: COUNT }, (_, index) => ({
    ...{ id: `n${index}`, role: 'user' as const, parts: [{ type: 'text', text: `next v${index}` }] },
  }))
  appendMessages(db, next.id, messages)
  await index(db)
  for (const word of ['v0', `v${COUNT - 1}`]) expect(await find(word)).toEqual([next.id])
  expect(await find('w1')).toEqual([])
})
