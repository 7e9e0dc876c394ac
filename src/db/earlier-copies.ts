import { Database } from 'bun:sqlite'
import { chmodSync, closeSync, copyFileSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncNow } from '../disk/lasting-files.ts'
import { wordsOf } from '../errors.ts'
import { codeOf } from '../read/error-code.ts'
import { migrations, schemaOf } from './schema.ts'

/**
 * Copies of the database from before a migration, each a file beside it: threadbox.db.before-19 is the database before its schema
 * became 19. After a downgrade the older version can use such a copy.
 */

/** How many copies are kept: the newest ones. */
const KEPT = 3

export interface EarlierCopy {
  path: string
  schema: number
  /** When the copy was made, as ISO time. */
  at: string
}

/**
 * Copies the committed state of a database to a file that outlasts a loss of power, and removes the oldest copies. The caller
 * prevents writes meanwhile. Returns the file's name. Throws an error that says what to do.
 */
export function keepCopy(path: string, nextSchema: number): string {
  const copy = `${path}.before-${nextSchema}`
  const draft = `${copy}.draft`
  try {
    rmSync(draft, { force: true })
    closeSync(openSync(draft, 'wx', 0o600))
    const db = new Database(path, { readonly: true, strict: true })
    try {
      db.query('vacuum into $draft').run({ draft })
    } finally {
      db.close()
    }
    put(draft, copy)
  } catch (error) {
    rmSync(draft, { force: true })
    throw new Error(
      `${path} has to be changed for this version, and no copy of it could be made before that: ${wordsOf(error)}. The copy needs as much space as the database.`,
    )
  }
  for (const { path: old } of listCopies(path).slice(KEPT)) rmSync(old)
  return basename(copy)
}

/** The newest copy whose schema is no newer than this one. */
export const findCopy = (path: string, knownSchema: number): EarlierCopy | undefined =>
  listCopies(path).find(({ schema }) => schema <= knownSchema)

/**
 * Replaces a newer database by the newest copy that a version with the schema `known` can read; the newer database is kept under
 * another name. No server may use it. Returns both. Throws an error that says what is in the way.
 */
export function goBack(path: string, known = migrations.length): { copy: EarlierCopy; newer: string } {
  const found = closedSchema(path)
  if (found <= known)
    throw new Error(`${path} is not of a newer version: its schema is ${found}, and this one knows ${known}.`)
  const copy = findCopy(path, known)
  if (!copy) throw new Error(`${path} has no copy beside it that this version can read. Put a backup in its place.`)
  const newer = `${path}.newer-${found}`
  const draft = `${path}.draft`
  copyFileSync(copy.path, draft)
  chmodSync(draft, 0o600)
  // A write-ahead log that is left belongs to the newer database.
  for (const suffix of ['-wal', '-shm']) moveIfThere(path + suffix, newer + suffix)
  renameSync(path, newer)
  put(draft, path)
  return { copy, newer }
}

/** Puts the newer database back that `goBack` has kept. What was written to the older one in between is lost. */
export function undoGoBack(path: string, newer: string): void {
  // A write-ahead log that is left belongs to the older database.
  for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
  for (const suffix of ['', '-wal', '-shm']) moveIfThere(newer + suffix, path + suffix)
  syncNow(dirname(path))
}

/** The newest first. */
function listCopies(path: string): EarlierCopy[] {
  const start = `${basename(path)}.before-`
  return readdirSync(dirname(path))
    .filter(name => name.startsWith(start) && /^\d+$/.test(name.slice(start.length)))
    .sort((a, b) => Number(b.slice(start.length)) - Number(a.slice(start.length)))
    .map(name => {
      const file = join(dirname(path), name)
      return { path: file, schema: readSchema(file), at: statSync(file).mtime.toISOString() }
    })
}

/** The schema of a copy, to which nobody writes. A file that is not a database has a schema that no version reads. */
function readSchema(path: string): number {
  try {
    const db = new Database(path, { readonly: true })
    try {
      return schemaOf(db)
    } finally {
      db.close()
    }
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** The schema of a database that nobody has open. Closing it here moves its log into it, as far as possible. */
function closedSchema(path: string): number {
  const db = new Database(path, { readwrite: true })
  try {
    return schemaOf(db)
  } finally {
    db.close()
  }
}

function moveIfThere(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

/** Gives a file its name, so that both content and name outlast a loss of power. */
function put(draft: string, path: string): void {
  syncNow(draft)
  renameSync(draft, path)
  syncNow(dirname(path))
}
