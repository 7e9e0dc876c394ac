import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findThreads } from '../../src/db/find-threads.ts'
import { openDatabase } from '../../src/db/open.ts'
import { addSandbox, cleanUpAfterEach, openTemporary, temporaryPath } from '../runs/support.ts'

cleanUpAfterEach()

const migrations = join(import.meta.dir, '../../src/db/migrations')
const at = '2026-01-01T00:00:00.000Z'

test('what was said before there was an index is found, in threads and runs that are listed', async () => {
  const path = temporaryPath()
  const old = new Database(path)
  const before = readdirSync(migrations).filter(name => name < '0010')
  for (const name of before.sort()) old.run(readFileSync(join(migrations, name), 'utf8'))
  old.run(`pragma user_version = ${before.length}`)
  old.run('insert into teams values (?, ?, ?)', ['team_1', 'one', at])
  old.run(
    `insert into sandboxes (id, team_id, agent_slug, agent_name, environment_id, backend, status, envs, cwd, created_at, updated_at, last_used_at)
     values ('sbx_1', 'team_1', 'echo', 'Echo', 'env_1', 'nsjail', 'active', '{}', '/', ?, ?, ?)`,
    [at, at, at],
  )
  for (const [thread, text] of [
    ['thr_1', 'older words'],
    ['thr_2', 'newer words'],
  ] as const) {
    old.run(
      `insert into threads (id, sandbox_id, status, external_user_id, created_at, updated_at) values (?, 'sbx_1', 'completed', 'u', ?, ?)`,
      [thread, at, at],
    )
    old.run(
      `insert into messages (thread_id, id, position, role, parts, created_at) values (?, 'm', 1, 'user', ?, ?)`,
      [thread, JSON.stringify([{ type: 'text', text }]), at],
    )
    old.run(
      `insert into runs (id, thread_id, sandbox_id, status, background, started_at) values (?, ?, 'sbx_1', 'completed', 0, ?)`,
      [`run_${thread}`, thread, at],
    )
  }
  old.close()
  const db = openDatabase(path)
  const find = async (fields: object) =>
    (await findThreads(db, { teamId: 'team_1', limit: 10, ...fields })).map(({ id }) => id)
  expect(await find({})).toEqual(['thr_2', 'thr_1'])
  expect(await find({ words: ['words'] })).toEqual(['thr_2', 'thr_1'])
  expect(await find({ words: ['older'] })).toEqual(['thr_1'])
  expect(await find({ words: ['words'], userId: 'u', agents: ['echo'], sandboxId: 'sbx_1' })).toHaveLength(2)
  expect(db.query('select distinct list_team_id as team from runs').all()).toEqual([{ team: 'team_1' }])
  // A message of a thread that was there gets a place behind those it had.
  db.run(
    `insert into messages (thread_id, id, position, role, parts, created_at) values ('thr_1', 'm2', 2, 'user', ?, ?)`,
    [JSON.stringify([{ type: 'text', text: 'latest' }]), at],
  )
  expect(await find({ words: ['latest'] })).toEqual(['thr_1'])
  expect(await find({ words: ['older'] })).toEqual(['thr_1'])
  db.close()
})

test('a message is stored whatever its parts are', () => {
  const db = openTemporary()
  const { id } = addSandbox(db)
  db.run(`insert into threads (id, sandbox_id, status, created_at, updated_at) values ('thr_1', ?, 'active', ?, ?)`, [
    id,
    at,
    at,
  ])
  const deep = `[${'['.repeat(2000)}${']'.repeat(2000)}]`
  const odd = [
    '[]',
    '[1,"a",null,[]]',
    '[{"type":"text"}]',
    '[{"type":"text","text":5}]',
    '{}',
    '"a"',
    'null',
    deep,
    '[{"type":"text","text":"\\ud800"}]',
  ]
  for (const [index, parts] of odd.entries())
    db.run(
      `insert into messages (thread_id, id, position, role, parts, created_at) values ('thr_1', ?, ?, 'user', ?, ?)`,
      [`m${index}`, index + 1, parts, at],
    )
  expect(db.query('select count(*) as count from messages').get()).toEqual({ count: odd.length })
})
