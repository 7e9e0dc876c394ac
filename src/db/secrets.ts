import type { Database } from 'bun:sqlite'
import type { Secret } from '../model/secret.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'
import { inTransaction } from './open.ts'
import { seal, unseal, unsealed } from './seal.ts'

const columns = 'id, team_id as teamId, name, created_at as createdAt, updated_at as updatedAt'
const VALUE = 'secrets.value'

/** A team's secrets, by name. */
export const listSecrets = (db: Database, teamId: string): Secret[] =>
  db
    .query<Secret, { teamId: string }>(`select ${columns} from secrets where team_id = $teamId order by name`)
    .all({ teamId })

export const findSecret = (db: Database, teamId: string, name: string): Secret | undefined =>
  db
    .query<Secret, { teamId: string; name: string }>(
      `select ${columns} from secrets where team_id = $teamId and name = $name`,
    )
    .get({ teamId, name }) ?? undefined

/** Throws sandbox_unavailable when the value cannot be decrypted. */
export function findSecretValue(db: Database, teamId: string, name: string): string | undefined {
  const row = db
    .query<{ id: string; value: string }, { teamId: string; name: string }>(
      'select id, value from secrets where team_id = $teamId and name = $name',
    )
    .get({ teamId, name })
  return row ? unsealed('team', () => unseal(db, row.value, VALUE, row.id)) : undefined
}

/** Stores a value, encrypted, in place of an earlier one. */
export const saveSecret = (
  db: Database,
  { teamId, name, value }: Pick<Secret, 'teamId' | 'name'> & { value: string },
): Secret =>
  inTransaction(db, () => {
    mustLast(db)
    const at = now()
    const secret = { id: newId('sec'), teamId, name, createdAt: at, ...findSecret(db, teamId, name), updatedAt: at }
    db.query(
      `insert into secrets (id, team_id, name, value, created_at, updated_at)
       values ($id, $teamId, $name, $sealed, $createdAt, $updatedAt)
       on conflict (id) do update set value = excluded.value, updated_at = excluded.updated_at`,
    ).run({ ...secret, sealed: seal(db, value, VALUE, secret.id) })
    return secret
  })

/** Returns false when there is no such secret. */
export function deleteSecret(db: Database, teamId: string, name: string): boolean {
  mustLast(db)
  return db.query('delete from secrets where team_id = $teamId and name = $name').run({ teamId, name }).changes > 0
}

/** For each name that the team's bindings use, the slugs of the agents and the number of sandboxes. */
export function findBound(db: Database, teamId: string): Map<string, { agents: string[]; sandboxes: number }> {
  const agents = db
    .query<{ name: string; slug: string }, { teamId: string }>(
      `select distinct b.value ->> '$.secret' as name, slug from agents, json_each(agents.secrets) b
       where team_id = $teamId order by slug`,
    )
    .all({ teamId })
  const sandboxes = db
    .query<{ name: string; count: number }, { teamId: string }>(
      `select b.value ->> '$.secret' as name, count(distinct sandboxes.id) as count
       from sandboxes, json_each(sandboxes.network, '$.secrets') b where team_id = $teamId group by b.value ->> '$.secret'`,
    )
    .all({ teamId })
  const bound = new Map<string, { agents: string[]; sandboxes: number }>()
  const of = (name: string) => {
    const found = bound.get(name) ?? { agents: [], sandboxes: 0 }
    bound.set(name, found)
    return found
  }
  for (const { name, slug } of agents) of(name).agents.push(slug)
  for (const { name, count } of sandboxes) of(name).sandboxes = count
  return bound
}
