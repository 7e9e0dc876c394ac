import { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { assertKey } from './seal.ts'

const PATIENCE_MS = 5000

/** What a backup needs to know of a copy of the database. */
export interface DatabaseCopy {
  schemaVersion: number
  sandboxes: { id: string; environmentId: string; backend: string }[]
  /** Snapshots of sandboxes' files, including removed ones that sandboxes still share. */
  snapshots: { id: string; backend: string; isRemoved: boolean }[]
  /** The names of the files of deployed agents. */
  bundles: string[]
}

/**
 * Writes the database as of this moment to a new file, whatever others write meanwhile. The copy keeps the database's schema,
 * which may be older than this version's.
 */
export function copyDatabase(path: string, to: string): DatabaseCopy {
  if (!existsSync(path)) throw new Error(`there is no database ${path}`)
  const db = new Database(path, { strict: true, readwrite: true })
  try {
    db.run(`pragma busy_timeout = ${PATIENCE_MS}`)
    db.run('vacuum into ?', [to])
  } finally {
    db.close()
  }
  return describe(to)
}

/** Describes a copy. Throws when the file is not a database, or is damaged. */
export function checkDatabase(path: string): DatabaseCopy {
  const db = new Database(path, { strict: true, readonly: true })
  try {
    const problems = db.query<{ integrity_check: string }, []>('pragma integrity_check').all()
    const [first] = problems
    if (first?.integrity_check !== 'ok') throw new Error(`the database is damaged: ${first?.integrity_check}`)
  } finally {
    db.close()
  }
  return describe(path)
}

/** Throws when the key file beside a database does not fit what is encrypted in it. */
export function checkSecrets(path: string): void {
  const db = new Database(path, { strict: true, readonly: true })
  try {
    assertKey(db)
  } finally {
    db.close()
  }
}

function describe(path: string): DatabaseCopy {
  const db = new Database(path, { strict: true, readonly: true })
  try {
    const columns = (table: string) =>
      db
        .query<{ name: string }, { table: string }>('select name from pragma_table_info($table)')
        .all({ table })
        .map(({ name }) => name)
    const names = (table: string, column: string) =>
      columns(table).includes(column)
        ? db.query<{ name: string }, []>(`select ${column} as name from ${table} where ${column} is not null`).all()
        : []
    const bundles = [
      ...names('deployments', 'bundle'),
      ...names('deployments', 'template'),
      ...names('sandboxes', 'bundle'),
      ...names('snapshots', 'bundle'),
    ]
    return {
      schemaVersion: db.query<{ user_version: number }, []>('pragma user_version').get()?.user_version ?? 0,
      sandboxes: db
        .query<{ id: string; environmentId: string; backend: string }, []>(
          'select id, environment_id as environmentId, backend from sandboxes order by id',
        )
        .all(),
      snapshots: columns('snapshots').includes('backend')
        ? db
            .query<{ id: string; backend: string; state: string }, []>(
              "select id, backend, state from snapshots where state in ('ready', 'removed') order by id",
            )
            .all()
            .map(({ state, ...snapshot }) => ({ ...snapshot, isRemoved: state === 'removed' }))
        : [],
      bundles: [...new Set(bundles.map(({ name }) => name))].sort(),
    }
  } finally {
    db.close()
  }
}
