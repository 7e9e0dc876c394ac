import { Database } from 'bun:sqlite'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrations } from '../../src/db/schema.ts'
import { seal } from '../../src/db/seal.ts'

/** The key of the team `default` in the rows of the first schema. */
export const OLD_KEY = 'tbx_migrated-key-of-a-test-0123456789'

/**
 * Makes the database that has lived through all schemas up to this one, each with the rows that its server wrote: those of
 * rows/0004.sql came when 4 was the newest, and went through every later migration. They were made by real use of a server,
 * with the columns that there were then. Triggers wrote the rest. In the SQL, `{{sealed COLUMN ID 'TEXT'}}` stands for an encrypted
 * text, and `{{packed 'JSON'}}` for a compressed one.
 */
export function makeOldDatabase(path: string, schema: number): void {
  const db = new Database(path, { strict: true, create: true })
  db.run('pragma journal_mode = wal')
  // Nobody needs it after a loss of power.
  db.run('pragma synchronous = off')
  for (const [index, step] of migrations.slice(0, schema).entries()) {
    db.run('pragma foreign_keys = off')
    db.transaction(() => step(db))()
    db.run('pragma foreign_keys = on')
    db.run(rowsOf(db, index + 1))
  }
  db.run(`pragma user_version = ${schema}`)
  db.close()
}

function rowsOf(db: Database, schema: number): string {
  const file = join(import.meta.dir, 'rows', `${String(schema).padStart(4, '0')}.sql`)
  if (!existsSync(file)) return 'select 1'
  return readFileSync(file, 'utf8')
    .replace(/\{\{sealed (\S+) (\S+) '(.*?)'\}\}/g, (_, column, id, text) => `'${seal(db, text, column, id)}'`)
    .replace(/\{\{packed '(.*?)'\}\}/g, (_, text) => `x'${Bun.zstdCompressSync(text).toHex()}'`)
}

export type Row = Record<string, unknown>

/** Every row of every table of ours, by table, as it can be read: what is encrypted is opened by `open`. */
export function allRows(db: Database, open: (text: string, column: string, row: Row) => string): Map<string, Row[]> {
  const tables = db
    .query<{ name: string }, []>(
      `select name from pragma_table_list where schema = 'main' and type = 'table'
       and name not like 'sqlite_%' and name not like 'message_search%' order by name`,
    )
    .all()
  return new Map(
    tables.map(({ name }) => [
      name,
      db
        .query<Row, []>(`select * from ${name}`)
        .all()
        .map(row =>
          Object.fromEntries(
            Object.entries(row).map(([column, value]) => [
              column,
              typeof value === 'string' && value.startsWith('sealed:') ? open(value, `${name}.${column}`, row) : value,
            ]),
          ),
        ),
    ]),
  )
}
