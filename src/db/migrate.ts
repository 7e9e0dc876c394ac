import type { Database } from 'bun:sqlite'
import { basename, dirname } from 'node:path'
import { version } from '../../package.json'
import { findCopy, keepCopy } from './earlier-copies.ts'
import { lockDirectory } from './lock.ts'
import { migrations, schemaOf } from './schema.ts'

/** The setting that names the version of threadbox which gave the database its schema. */
export const SCHEMA_BY = 'schema_by'

/** Before this schema secrets were stored in plain text, and a copy would keep them readable. */
const SEALED_SINCE = 3
const LOCK_PATIENCE_MS = 2000
const LOCK_LOOK_MS = 50

export interface Migrating {
  /** Receives a line for the operator when the database was changed, with the name of the copy from before. */
  report?: (line: string) => void
}

/**
 * Brings the database to this version's schema, completely or not at all. Before it changes a database with rows it keeps a copy
 * beside it. Returns true when the schema was changed. Throws when the schema is newer, when a server of another version uses the
 * database, and when the copy cannot be made.
 */
export function migrate(db: Database, { report = () => {} }: Migrating): boolean {
  const found = schemaOf(db)
  if (found > migrations.length) throw new Error(refusal(db, found))
  if (found === migrations.length) return false
  const lock = found === 0 ? undefined : lockPatiently(db)
  try {
    return db
      .transaction(() => {
        // Another process may have migrated the database meanwhile.
        const from = schemaOf(db)
        if (from >= migrations.length) return false
        const to = migrations.length
        if (from >= SEALED_SINCE) {
          const copy = keepCopy(db.filename, to)
          report(`the database is brought from schema ${from} to ${to}; as it was, it is kept as ${copy}`)
        } else if (from > 0)
          report(
            `the database is brought from schema ${from} to ${to}; no copy is kept, since schema ${from} has secrets unencrypted`,
          )
        for (const step of migrations.slice(from)) step(db)
        db.query(
          'insert into settings (name, value) values ($name, $version) on conflict (name) do update set value = excluded.value',
        ).run({ name: SCHEMA_BY, version })
        db.run(`pragma user_version = ${to}`)
        return true
      })
      .immediate()
  } finally {
    lock?.release()
  }
}

/** A server holds this lock as long as it runs: a server of an earlier version could not work with another schema. */
function lockPatiently(db: Database): { release(): void } | undefined {
  const deadline = performance.now() + LOCK_PATIENCE_MS
  for (;;) {
    const lock = lockDirectory(dirname(db.filename))
    if (lock) return lock
    const from = schemaOf(db)
    if (from === migrations.length) return undefined
    if (performance.now() > deadline) {
      throw new Error(
        `${db.filename} has to be brought from schema ${from} to ${migrations.length}, and a server of an earlier version runs on it, or another process is at it. Stop that server first, or use its version.`,
      )
    }
    Bun.sleepSync(LOCK_LOOK_MS)
  }
}

/** Explains that a database is newer than this version, and what can be done. */
function refusal(db: Database, found: number): string {
  const path = db.filename
  const by = findWriter(db)
  const wrote = by === undefined || by === version ? 'a newer threadbox' : `a newer threadbox, ${by}`
  const fault = `${path} was written by ${wrote} (schema ${found}, this one knows ${migrations.length}).`
  const copy = findCopy(path, migrations.length)
  if (!copy) return `${fault} Use that version, or another data directory.`
  return `${fault} Use that version. Or go back to ${basename(copy.path)}, the database as it was before the update (${copy.at}): threadbox database go-back --data-dir ${dirname(path)}`
}

/**
 * The version of threadbox that wrote the database. Undefined when it is not known, or when a later version stores it elsewhere.
 */
function findWriter(db: Database): string | undefined {
  try {
    return (
      db.query<{ value: string }, { name: string }>('select value from settings where name = $name').get({
        name: SCHEMA_BY,
      })?.value ?? undefined
    )
  } catch {
    return undefined
  }
}
