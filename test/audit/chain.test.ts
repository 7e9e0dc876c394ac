import type { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startAuditCopy } from '../../src/core/audit/copy.ts'
import { cutOldAudit } from '../../src/core/audit/housekeeping.ts'
import { verifyAudit } from '../../src/core/audit/verify.ts'
import { appendAudit, findAuditHead, linkHash, listAudit } from '../../src/db/audit.ts'
import { inTransaction, openDatabase } from '../../src/db/open.ts'
import { canonicalJson } from '../../src/read/canonical-json.ts'

const directory = mkdtempSync(join(tmpdir(), 'threadbox-audit-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

let count = 0
/** A database with a chain of ten rows, a day apart. */
function chain(): Database {
  const db = openDatabase(join(directory, `${++count}.db`))
  for (let day = 10; day < 20; day++) {
    appendAudit(db, [
      {
        time: `2020-01-${day}T00:00:00.000Z`,
        teamId: day % 2 === 0 ? 'team_a' : 'team_b',
        actor: { keyId: 'key_1' },
        action: day % 5 === 0 ? 'key.created' : 'keyring.opened',
        target: { day },
        outcome: 'done',
      },
    ])
  }
  return db
}
const problemsOf = (db: Database, kept: { seq: number; hash: string }[] = []) => verifyAudit(db, kept).problems

test('a chain that nobody has touched is whole, and goes through each place that was kept', () => {
  using db = chain()
  const head = findAuditHead(db)
  appendAudit(db, [{ actor: {}, action: 'a', target: {}, outcome: 'done' }])
  expect(verifyAudit(db, [head])).toMatchObject({ count: 11, head: { seq: 11 }, problems: [] })
})

test('a hash can be made again by other tools', () => {
  using db = chain()
  const [second, first] = listAudit(db, { limit: 2 }) as [any, any]
  const made = Bun.spawnSync(['sha256sum'], { stdin: Buffer.from(`${first.hash}\n${second.entry}`) }).stdout.toString()
  expect(made.slice(0, 64)).toBe(second.hash)
})

/** Puts a row in the place of another, with a hash that fits what is before it. */
function rewrite(db: Database, seq: number, change: (entry: string) => string) {
  const before = db.query('select hash from audit where seq = ?').get(seq - 1) as { hash: string }
  const { entry } = db.query('select entry from audit where seq = ?').get(seq) as { entry: string }
  db.query('update audit set entry = ?, hash = ? where seq = ?').run(
    change(entry),
    linkHash(before.hash, change(entry)),
    seq,
  )
}
const swap = (db: Database, a: number, b: number) => {
  db.run(`update audit set seq = 1000 where seq = ${a}`)
  db.run(`update audit set seq = ${a} where seq = ${b}`)
  db.run(`update audit set seq = ${b} where seq = 1000`)
  db.run(`update sqlite_sequence set seq = 10 where name = 'audit'`)
}

const tampered: [string, (db: Database) => unknown][] = [
  ['a row altered', db => db.run(`update audit set entry = replace(entry, 'key_1', 'key_2') where seq = 5`)],
  ['a row altered and hashed anew', db => rewrite(db, 5, entry => entry.replace('key_1', 'key_2'))],
  ['a hash altered', db => db.run(`update audit set hash = replace(hash, substr(hash, 1, 1), 'x') where seq = 5`)],
  ['a row removed', db => db.run('delete from audit where seq = 5')],
  ['the first row removed', db => db.run('delete from audit where seq = 1')],
  ['two rows in another order', db => swap(db, 4, 5)],
  ['the last two rows in another order', db => swap(db, 9, 10)],
  ['the last rows removed', db => db.run('delete from audit where seq > 7')],
  [
    'a row inserted',
    db => {
      for (let seq = 10; seq >= 5; seq--) db.run(`update audit set seq = seq + 1 where seq = ${seq}`)
      db.run(`insert into audit (seq, entry, hash) select 5, entry, hash from audit where seq = 6`)
    },
  ],
  [
    'a row inserted before the first',
    db => db.run(`insert into audit (seq, entry, hash) select -5, entry, hash from audit where seq = 6`),
  ],
  [
    'the last rows removed, and as many written since',
    db => {
      db.run('delete from audit where seq > 7')
      for (let each = 0; each < 5; each++) appendAudit(db, [{ actor: {}, action: 'a', target: {}, outcome: 'done' }])
    },
  ],
  [
    'the first rows removed as if they were old',
    db => {
      db.run('update audit_anchor set seq = 3, hash = (select hash from audit where seq = 3)')
      db.run('delete from audit where seq <= 3')
    },
  ],
]
describe('the chain shows', () => {
  test.each(tampered)('%s', (_, tamper) => {
    using db = chain()
    tamper(db)
    expect(problemsOf(db)).not.toEqual([])
  })

  test('by a place that was kept, the last rows removed with what counts them', () => {
    using db = chain()
    const head = findAuditHead(db)
    db.run('delete from audit where seq > 7')
    db.run(`update sqlite_sequence set seq = 7 where name = 'audit'`)
    expect(problemsOf(db)).toEqual([])
    expect(problemsOf(db, [head])).toEqual([expect.stringContaining('row 10')])
  })

  test('by a place that was kept, a chain that was written anew', () => {
    using db = chain()
    const head = findAuditHead(db)
    for (let seq = 5; seq <= 10; seq++) rewrite(db, seq, entry => entry.replace('key_1', 'key_2'))
    expect(problemsOf(db)).toEqual([])
    expect(problemsOf(db, [head])).toEqual([expect.stringContaining('written anew')])
  })
})

test('a place that was kept and is older than all rows is not taken for one that was compared, a regression', async () => {
  using db = chain()
  const [head, old] = [findAuditHead(db), { seq: 2, hash: 'f'.repeat(64) }]
  await cutOldAudit(keeper(db, (Date.now() - Date.parse('2020-01-15T12:00:00.000Z')) / 86_400_000))
  expect(problemsOf(db, [old])).toEqual([expect.stringContaining('nothing was compared')])
  expect(problemsOf(db, [old, head])).toEqual([])
})

test('what is too old is removed also where rows are missing', async () => {
  using db = chain()
  db.run('delete from audit where seq between 4 and 6')
  await cutOldAudit(keeper(db, (Date.now() - Date.parse('2020-01-15T12:00:00.000Z')) / 86_400_000))
  expect(verifyAudit(db, [])).toMatchObject({
    count: 5,
    anchor: { seq: 3 },
    problems: [expect.stringContaining('row 7')],
  })
})

const keeper = (db: Database, auditDays: number) => ({
  db,
  config: { auditDays } as any,
  log: (line: string) => {
    throw new Error(line)
  },
})

test('what is too old is removed, and the chain says so and goes on', async () => {
  using db = chain()
  const head = findAuditHead(db)
  await cutOldAudit(keeper(db, 0))
  expect(verifyAudit(db, []).count).toBe(10)
  const now = (Date.now() - Date.parse('2020-01-15T12:00:00.000Z')) / 86_400_000
  await cutOldAudit(keeper(db, now))
  expect(verifyAudit(db, [head])).toMatchObject({ count: 5, anchor: { seq: 6 }, head: { seq: 11 }, problems: [] })
  await cutOldAudit(keeper(db, now))
  expect(findAuditHead(db).seq).toBe(11)
  await cutOldAudit(keeper(db, 1))
  appendAudit(db, [{ actor: {}, action: 'a', target: {}, outcome: 'done' }])
  expect(verifyAudit(db, [head])).toMatchObject({ count: 3, anchor: { seq: 10 }, problems: [] })
})

test('a copy of rows that are not of this database goes on with those that are, and says so: regression', async () => {
  using older = chain()
  using newer = chain()
  const file = join(directory, 'copy.jsonl')
  const fact = { actor: {}, action: 'a', target: {}, outcome: 'done' }
  for (let each = 0; each < 5; each++) appendAudit(newer, [fact])
  const lines: string[] = []
  const log = (line: string) => void lines.push(line)
  await startAuditCopy({ db: older, log }, file).close()
  await startAuditCopy({ db: newer, log }, file).close()
  expect(lines).toEqual([])
  // An older database is put in the place of the newer one.
  appendAudit(older, [{ ...fact, action: 'of-the-older' }])
  for (let start = 0; start < 2; start++) await startAuditCopy({ db: older, log }, file).close()
  const rows = (await Bun.file(file).text())
    .trim()
    .split('\n')
    .map(line => JSON.parse(line).entry)
  expect(rows.map(({ seq }) => seq)).toEqual([...Array.from({ length: 15 }, (_, at) => at + 1), 11])
  expect(rows.at(-1).action).toBe('of-the-older')
  expect(lines).toEqual([expect.stringMatching(/row 15 .* not of this database/)])
})

test('rows are found by team, action and time', () => {
  using db = chain()
  const seqs = (page: object) => listAudit(db, { limit: 100, ...page }).map(({ seq }) => seq)
  expect(seqs({ teamId: 'team_b' })).toEqual([10, 8, 6, 4, 2])
  expect(seqs({ action: 'key' })).toEqual([6, 1])
  expect(seqs({ action: 'key.created', teamId: 'team_a' })).toEqual([1])
  expect(seqs({ since: '2020-01-13T00:00:00.000Z', until: '2020-01-15T00:00:00.000Z' })).toEqual([5, 4])
  expect(seqs({ since: '2030' })).toEqual([])
  expect(seqs({ before: 4, limit: 2 })).toEqual([3, 2])
  expect(seqs({ teamId: 'team_a', action: 'key' })).toEqual([1])
  expect(seqs({ teamId: 'team_b', before: 8, limit: 2 })).toEqual([6, 4])
  expect(seqs({ teamId: 'team_a', since: '2020-01-13T00:00:00.000Z', until: '2020-01-15T00:00:00.000Z' })).toEqual([5])
  expect(seqs({ teamId: 'team_none' })).toEqual([])
})

test("a team's rows of a rare action are found without a look at all others: regression", () => {
  using db = chain()
  const fact = { teamId: 'team_a', actor: {}, action: 'exec.ended', target: {}, outcome: 'exited' }
  const find = (page: object) => {
    const timesMs = Array.from({ length: 9 }, () => {
      const begunAtMs = performance.now()
      listAudit(db, { limit: 10, ...page })
      return performance.now() - begunAtMs
    })
    return Math.min(...timesMs)
  }
  const pages = [{ teamId: 'team_a', action: 'key' }, { teamId: 'team_b' }, { teamId: 'team_none' }]
  appendAudit(db, Array<typeof fact>(500).fill(fact))
  const few = pages.map(find)
  appendAudit(db, Array<typeof fact>(20_000).fill(fact))
  const many = pages.map(find)
  // 40 times the rows took 40 times as long.
  for (const [index, ms] of many.entries()) expect(ms).toBeLessThan(10 * few[index]! + 1)
})

test('a row of a transaction that fails is not there, and times never go back', () => {
  using db = chain()
  const fact = { actor: {}, action: 'a', target: {}, outcome: 'done' }
  expect(() =>
    inTransaction(db, () => {
      appendAudit(db, [fact])
      throw new Error('no')
    }),
  ).toThrow('no')
  appendAudit(db, [{ ...fact, time: '1999-01-01T00:00:00.000Z' }])
  expect(findAuditHead(db)).toMatchObject({ seq: 11, time: '2020-01-19T00:00:00.000Z' })
  expect(problemsOf(db)).toEqual([])
})

test('JSON has one form', () => {
  const value = { b: [1, null, { z: 'ä"\n', a: 1e21 }], a: undefined, A: true, é: 0.1 }
  expect(canonicalJson(value)).toBe('{"A":true,"b":[1,null,{"a":1e+21,"z":"ä\\"\\n"}],"é":0.1}')
})

test('processes that write at once make one chain', async () => {
  using db = chain()
  const script = `
    import { openDatabase } from '${join(import.meta.dir, '../../src/db/open.ts')}'
    import { appendAudit } from '${join(import.meta.dir, '../../src/db/audit.ts')}'
    const db = openDatabase(process.argv[1])
    db.run('pragma busy_timeout = 30000')
    for (let index = 0; index < 100; index++)
      appendAudit(db, [{ actor: { command: process.argv[2] }, action: 'a', target: { index }, outcome: 'done' }])`
  const children = ['one', 'two', 'three'].map(name =>
    Bun.spawn([process.execPath, '-e', script, db.filename, name], { stdio: ['ignore', 'inherit', 'inherit'] }),
  )
  expect(await Promise.all(children.map(({ exited }) => exited))).toEqual([0, 0, 0])
  expect(verifyAudit(db, [])).toMatchObject({ count: 310, problems: [] })
})
