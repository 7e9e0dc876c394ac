import { Database } from 'bun:sqlite'
import { closeSync, openSync } from 'node:fs'
import { schemaOf } from './schema.ts'

/**
 * Makes a database at `to` with the schema of the one at `from` and none of its rows, so that another build can try to migrate
 * it. Returns the version of the schema.
 */
export function copySchema(from: string, to: string): number {
  const source = new Database(from, { readonly: true, strict: true })
  try {
    closeSync(openSync(to, 'wx', 0o600))
    const copy = new Database(to, { readwrite: true, strict: true })
    try {
      const version = schemaOf(source)
      copy.transaction(() => {
        for (const sql of statementsOf(source)) copy.run(sql)
        copy.run(`pragma user_version = ${version}`)
      })()
      return version
    } finally {
      copy.close()
    }
  } finally {
    source.close()
  }
}

/** Tables come first. The tables that a virtual table uses are made with it. */
function statementsOf(db: Database): string[] {
  const rows = db
    .query<{ type: string; name: string; sql: string }, []>(
      "select type, name, sql from sqlite_schema where sql is not null and name not like 'sqlite\\_%' escape '\\' order by type <> 'table', rowid",
    )
    .all()
  const virtual = rows.filter(({ sql }) => /^create virtual table/i.test(sql)).map(({ name }) => `${name}_`)
  return rows.filter(({ name }) => !virtual.some(start => name.startsWith(start))).map(({ sql }) => sql)
}

/** The version of a database's schema. Undefined when there is no database. */
export function readSchema(path: string): number | undefined {
  const isThere = openSafely(path)
  if (!isThere) return undefined
  const db = new Database(path, { readonly: true, strict: true })
  try {
    return schemaOf(db)
  } finally {
    db.close()
  }
}

function openSafely(path: string): boolean {
  try {
    closeSync(openSync(path, 'r'))
    return true
  } catch {
    return false
  }
}
