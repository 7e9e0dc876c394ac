import { expect, test } from 'bun:test'
import { readBeside } from '../../src/db/read-beside.ts'
import { ensureTeam } from '../../src/db/teams.ts'
import { cleanUpAfterEach, openTemporary } from '../runs/support.ts'

cleanUpAfterEach()

test('a read beside the event loop sees what was committed, and lets other work run meanwhile', async () => {
  const db = openTemporary()
  ensureTeam(db, 'seen')
  let isDone = false
  let turns = 0
  const answer = readBeside<{ name: string; count: number }>(
    db,
    `with recursive n (i) as (select 1 union all select i + 1 from n where i < $most)
     select name, (select count(*) from n) as count from teams where name = 'seen'`,
    { most: 2_000_000 },
  ).finally(() => {
    isDone = true
  })
  while (!isDone) {
    turns += 1
    await new Promise(setImmediate)
  }
  expect(await answer).toEqual([{ name: 'seen', count: 2_000_000 }])
  expect(turns).toBeGreaterThan(50)
})

test('reads at the same time get their own answers, and one that fails says why', async () => {
  const db = openTemporary()
  const one = (value: number) => readBeside(db, 'select $value as value', { value })
  const wrong = readBeside(db, 'select nothing', {}).catch(String)
  expect(await Promise.all([one(1), one(2), one(3)])).toEqual([[{ value: 1 }], [{ value: 2 }], [{ value: 3 }]])
  expect(await wrong).toContain('SQLiteError')
  expect(await readBeside(db, 'delete from teams', {}).catch(String)).toContain('readonly')
})
