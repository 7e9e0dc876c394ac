import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { openDatabase } from '../../src/db/open.ts'
import { findSetting, saveSetting } from '../../src/db/settings.ts'
import { ensureTeam, findTeam } from '../../src/db/teams.ts'
import { cleanUpAfterEach, openTemporary, temporaryPath } from '../runs/support.ts'

cleanUpAfterEach()

test('only its owner can read the files of the database', () => {
  const path = temporaryPath()
  ensureTeam(openTemporary(path), 'team')
  for (const suffix of ['', '-wal', '-shm']) expect(statSync(path + suffix).mode & 0o777).toBe(0o600)
})

describe('a connection', () => {
  const pragmas: [string, unknown][] = [
    ['foreign_keys', 1],
    ['journal_mode', 'wal'],
    ['synchronous', 1],
    ['busy_timeout', 20],
    ['user_version', 29],
  ]
  for (const [name, value] of pragmas)
    test(`has ${name} ${value}`, () => {
      const row = openTemporary().query(`pragma ${name}`).get() as Record<string, unknown>
      expect(Object.values(row)).toEqual([value])
    })
})

test('every table is strict', () => {
  const tables = openTemporary()
    .query("select name, strict from pragma_table_list where schema = 'main' and type = 'table'")
    .all() as {
    name: string
    strict: number
  }[]
  expect(tables.filter(table => !table.strict && !table.name.startsWith('sqlite_'))).toEqual([])
})

test('what was stored is there when it is opened again', () => {
  const path = temporaryPath()
  const team = ensureTeam(openTemporary(path), 'team')
  expect(findTeam(openTemporary(path), 'team')).toEqual(team)
})

test('a database of a newer version is refused, and stays as it is', () => {
  const path = temporaryPath()
  openTemporary(path).run('pragma user_version = 99')
  expect(() => openDatabase(path)).toThrow(/newer threadbox \(schema 99, this one knows 29\)/)
  expect(openVersion(path)).toBe(99)
})

test('a migration that fails leaves nothing behind', () => {
  const path = temporaryPath()
  const other = new Database(path)
  other.run('create table agents (mine text)')
  expect(() => openDatabase(path)).toThrow('agents already exists')
  expect(openVersion(path)).toBe(0)
  expect(other.query("select name from sqlite_schema where type = 'table'").all()).toEqual([{ name: 'agents' }])
  other.close()
})

test('two servers that open a new database at once both get it', async () => {
  const path = temporaryPath()
  const script = `import { openDatabase } from '${import.meta.dir}/../../src/db/open.ts'; openDatabase(process.argv[1])`
  const children = Array.from({ length: 4 }, () =>
    Bun.spawn([process.execPath, '-e', script, path], { stderr: 'pipe' }),
  )
  expect(await Promise.all(children.map(child => child.exited))).toEqual([0, 0, 0, 0])
})

test('a team is made once', () => {
  const db = openTemporary()
  const team = ensureTeam(db, 'b')
  expect(ensureTeam(db, 'b')).toEqual(team)
  expect(findTeam(db, 'none')).toBeUndefined()
  expect(ensureTeam(db, 'a')).not.toEqual(team)
})

test('a setting keeps its last value', () => {
  const db = openTemporary()
  expect(findSetting(db, 'token-key')).toBeUndefined()
  saveSetting(db, 'token-key', 'a')
  saveSetting(db, 'token-key', 'b')
  expect(findSetting(db, 'token-key')).toBe('b')
})

function openVersion(path: string): unknown {
  const db = new Database(path, { readonly: true })
  const row = db.query('pragma user_version').get() as { user_version: number }
  db.close()
  return row.user_version
}
