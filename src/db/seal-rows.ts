import type { Database } from 'bun:sqlite'
import { isObject, parseJson } from '../read/json.ts'
import { isSecretEnvs, seal } from './seal.ts'

/** Encrypts what versions before schema 3 stored as it was. */
export function sealRows(db: Database): void {
  const agents = db.query<{ id: string; sandbox: string; options: string }, []>(
    'select id, sandbox, options from agents',
  )
  for (const { id, sandbox, options } of agents.all()) {
    if (isSecretEnvs(objectOf(sandbox).envs)) {
      const sealed = seal(db, sandbox, 'agents.sandbox', id)
      db.query('update agents set sandbox = $sealed where id = $id').run({ id, sealed })
    }
    if (objectOf(options).mcpServers !== undefined) {
      const sealed = seal(db, options, 'agents.options', id)
      db.query('update agents set options = $sealed where id = $id').run({ id, sealed })
    }
  }
  const sandboxes = db.query<{ id: string; envs: string }, []>("select id, envs from sandboxes where envs <> '{}'")
  for (const { id, envs } of sandboxes.all()) {
    const sealed = seal(db, envs, 'sandboxes.envs', id)
    db.query('update sandboxes set envs = $sealed where id = $id').run({ id, sealed })
  }
}

function objectOf(text: string) {
  const value = parseJson(text)
  if (!isObject(value)) throw new Error('The database holds an unreadable agent.')
  return value
}
