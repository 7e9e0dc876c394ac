import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

test.each([3, 5, 6])(
  'a read beside the event loop is refused when %d descriptors are free, too few for its thread: regression',
  async free => {
    const directory = mkdtempSync(join(tmpdir(), 'threadbox-read-beside-'))
    try {
      const command = [
        process.execPath,
        join(import.meta.dir, 'few-descriptors.ts'),
        join(directory, 'a.db'),
        `${free}`,
      ]
      const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'pipe'] })
      const refusal = 'Error: too few descriptors are free for a read beside the event loop'
      expect(await child.stdout.text()).toBe(`${refusal}\n[{"one":1}]\n`)
      expect(await child.exited).toBe(0)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  },
)
