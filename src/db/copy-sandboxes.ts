import { Database } from 'bun:sqlite'
import { newId } from './id.ts'

/** The columns that differ in each copy. */
const own = new Map([
  ['id', '$newId'],
  ['environment_id', '$environmentId'],
  ['name', 'null'],
])

/**
 * Copies the row of a sandbox once for each of these environments. The database may be of another version: its schema stays. For
 * measurements only, while no server uses it.
 */
export function copySandboxes(path: string, id: string, environmentIds: readonly string[]): void {
  const db = new Database(path, { strict: true, readwrite: true })
  try {
    const columns = db.query<{ name: string }, []>("select name from pragma_table_info('sandboxes')").all()
    const names = columns.map(({ name }) => name)
    const values = names.map(name => own.get(name) ?? name)
    const insert = db.query(`insert into sandboxes (${names}) select ${values} from sandboxes where id = $id`)
    db.transaction(() => {
      for (const environmentId of environmentIds) insert.run({ id, newId: newId('sbx'), environmentId })
    }).immediate()
  } finally {
    db.close()
  }
}
