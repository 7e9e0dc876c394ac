import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { version } from '../../package.json'
import { goBack } from '../../src/db/earlier-copies.ts'
import { lockDirectory } from '../../src/db/lock.ts'
import { openDatabase } from '../../src/db/open.ts'
import { migrations } from '../../src/db/schema.ts'
import { cleanUpAfterEach, temporaryPath } from '../runs/support.ts'
import { command } from '../support/server.ts'
import { makeOldDatabase } from './old-database.ts'

cleanUpAfterEach()
setDefaultTimeout(60_000)

const newest = migrations.length
const copiesOf = (path: string) =>
  readdirSync(dirname(path))
    .filter(name => name.includes('.before-'))
    .sort()

function open(path: string): string[] {
  const lines: string[] = []
  openDatabase(path, { report: line => lines.push(line) }).close()
  return lines
}

const query = (path: string, sql: string): unknown[] => {
  const db = new Database(path, { readonly: true })
  try {
    return db.query(sql).values().flat()
  } finally {
    db.close()
  }
}

/** As a later version leaves a database. */
function makeNewer(path: string, schema = newest + 3): void {
  const db = new Database(path)
  db.run("insert into settings (name, value) values ('later', 'kept')")
  db.run("update settings set value = '9.9.9' where name = 'schema_by'")
  db.run(`pragma user_version = ${schema}`)
  db.close()
}

test('a database is kept as it was before a migration, for its owner alone, and the log says where', () => {
  const path = temporaryPath()
  makeOldDatabase(path, 12)
  const hashes = query(path, 'select hash from api_keys order by id')
  const [line, ...more] = open(path)
  expect(more).toEqual([])
  expect(line).toBe(
    `the database is brought from schema 12 to ${newest}; as it was, it is kept as threadbox.db.before-${newest}`,
  )
  const copy = `${path}.before-${newest}`
  expect(statSync(copy).mode & 0o777).toBe(0o600)
  expect(query(copy, 'pragma user_version')).toEqual([12])
  expect(query(copy, 'pragma integrity_check')).toEqual(['ok'])
  expect(query(copy, 'select hash from api_keys order by id')).toEqual(hashes)
  expect(query(path, "select value from settings where name = 'schema_by'")).toEqual([version])
  expect(readdirSync(dirname(path)).filter(name => name.includes('draft') || name.includes('before-'))).toEqual([
    `threadbox.db.before-${newest}`,
  ])
})

test('nothing is copied when there is nothing to change, or nothing in it', () => {
  const path = temporaryPath()
  expect([open(path), open(path), copiesOf(path)]).toEqual([[], [], []])
})

test('what earlier versions stored unencrypted is not copied', () => {
  const path = temporaryPath()
  makeOldDatabase(path, 2)
  expect(open(path)).toEqual([expect.stringContaining('no copy is kept')])
  expect(copiesOf(path)).toEqual([])
})

test('the three newest copies are kept', () => {
  const path = temporaryPath()
  makeOldDatabase(path, 12)
  for (const schema of [5, 7, 9, 11]) writeFileSync(`${path}.before-${schema}`, '')
  writeFileSync(`${path}.before-lunch`, 'mine')
  open(path)
  expect(copiesOf(path)).toEqual(['11', '9', 'lunch', String(newest)].map(each => `threadbox.db.before-${each}`).sort())
})

test('without a copy the database is not changed', () => {
  const path = temporaryPath()
  makeOldDatabase(path, 12)
  // A file cannot take the place of a directory.
  mkdirSync(`${path}.before-${newest}`)
  expect(() => open(path)).toThrow(/no copy of it could be made before that.*as much space as the database/s)
  expect(query(path, 'pragma user_version')).toEqual([12])
  expect(readdirSync(dirname(path)).filter(name => name.includes('draft'))).toEqual([])
})

test('a database is not changed under a server of an earlier version', () => {
  const path = temporaryPath()
  makeOldDatabase(path, 12)
  const lock = lockDirectory(dirname(path))
  expect(() => open(path)).toThrow(
    `has to be brought from schema 12 to ${newest}, and a server of an earlier version runs on it`,
  )
  expect([query(path, 'pragma user_version'), copiesOf(path)]).toEqual([[12], []])
  lock?.release()
  expect(open(path)).toHaveLength(1)
})

test('of commands that meet an old database at once, one changes it and all go on', async () => {
  const path = temporaryPath()
  makeOldDatabase(path, 12)
  const run = () => command(['keys', 'list', '--quiet', '--data-dir', dirname(path)])
  const all = await Promise.all([run(), run(), run()])
  expect(all.map(({ code }) => code)).toEqual([0, 0, 0])
  expect(
    all
      .map(({ stderr }) => stderr)
      .join('')
      .match(/brought from schema/g),
  ).toHaveLength(1)
  expect(query(path, 'pragma user_version')).toEqual([newest])
})

test('a newer database is refused with the version that wrote it and the way back, which leads back', async () => {
  const path = temporaryPath()
  makeOldDatabase(path, 12)
  open(path)
  // The copy that the later version has kept is of this one.
  const now = query(path, 'select count(*) from api_keys')
  const db = new Database(path)
  db.run(`vacuum into '${path}.before-${newest + 3}'`)
  db.close()
  makeNewer(path)
  const refused = await command(['keys', 'list', '--data-dir', dirname(path)])
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(
    `written by a newer threadbox, 9.9.9 (schema ${newest + 3}, this one knows ${newest})`,
  )
  expect(refused.stderr).toContain(`threadbox.db.before-${newest + 3}`)
  expect(refused.stderr).toContain(`threadbox database go-back --data-dir ${dirname(path)}`)

  const back = await command(['database', 'go-back', '--data-dir', dirname(path)])
  expect([back.code, back.stderr]).toEqual([0, ''])
  expect(back.stdout).toContain(`(schema ${newest})`)
  expect(back.stdout).toContain(`${path}.newer-${newest + 3}`)
  expect(open(path)).toEqual([])
  expect(query(path, 'select count(*) from api_keys')).toEqual(now)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  // What was written since is not lost.
  expect(query(`${path}.newer-${newest + 3}`, "select value from settings where name = 'later'")).toEqual(['kept'])
  const again = await command(['database', 'go-back', '--data-dir', dirname(path)])
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('is not of a newer version')])
})

test('a newer database without a copy that this version reads is refused, and stays as it is', () => {
  const path = temporaryPath()
  open(path)
  makeNewer(path)
  // Of a version in between, and one that no version reads.
  const db = new Database(`${path}.before-${newest + 3}`)
  db.run(`pragma user_version = ${newest + 1}`)
  db.close()
  writeFileSync(`${path}.before-${newest + 2}`, 'no database at all, but long enough to be read as one'.repeat(9))
  expect(() => open(path)).toThrow(/9\.9\.9 .*Use that version, or another data directory\.$/)
  expect(() => goBack(path)).toThrow('has no copy beside it that this version can read')
  expect(query(path, "select value from settings where name = 'later'")).toEqual(['kept'])
})

test('while a server runs, nothing is put back', async () => {
  const path = temporaryPath()
  open(path)
  makeNewer(path)
  const lock = lockDirectory(dirname(path))
  const { code, stderr } = await command(['database', 'go-back', '--data-dir', dirname(path)])
  lock?.release()
  expect([code, stderr]).toEqual([1, expect.stringContaining('a server runs on')])
  expect(existsSync(`${path}.newer-${newest + 3}`)).toBe(false)
})
