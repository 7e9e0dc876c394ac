import type { Database } from 'bun:sqlite'
import type { ApiKey, ApiKeyInput } from '../model/key.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'
import { type Columns, present } from './row.ts'

type Row = Columns<ApiKey>

const columns = `k.id, k.team_id as teamId, k.name, k.hint, k.created_at as createdAt, k.expires_at as expiresAt,
  k.revoked_at as revokedAt`

/** Throws when the hash is there already. */
export function insertKey(db: Database, { hash, ...input }: ApiKeyInput): ApiKey {
  mustLast(db)
  const key: ApiKey = { id: newId('key'), ...input, createdAt: now() }
  db.query(
    `insert into api_keys (id, team_id, name, hash, hint, created_at, expires_at)
     values ($id, $teamId, $name, $hash, $hint, $createdAt, $expiresAt)`,
  ).run({ expiresAt: null, ...key, hash })
  return key
}

/** The key with this hash, also when it is expired or revoked: the caller says which it is. */
export function findKeyByHash(db: Database, hash: string): ApiKey | undefined {
  const row = db.query<Row, { hash: string }>(`select ${columns} from api_keys k where k.hash = $hash`).get({ hash })
  return row ? present<ApiKey>(row) : undefined
}

export function findKey(db: Database, id: string): ApiKey | undefined {
  const row = db.query<Row, { id: string }>(`select ${columns} from api_keys k where k.id = $id`).get({ id })
  return row ? present<ApiKey>(row) : undefined
}

/** Every key with the name of its team, oldest first. */
export const listKeys = (db: Database): (ApiKey & { team: string })[] =>
  db
    .query<Row & { team: string }, []>(
      `select ${columns}, t.name as team from api_keys k join teams t on t.id = k.team_id order by k.id`,
    )
    .all()
    .map(row => present<ApiKey & { team: string }>(row))

/** False when there is no such key, or it is revoked already. */
export function revokeKey(db: Database, id: string): boolean {
  mustLast(db)
  return (
    db.query('update api_keys set revoked_at = $now where id = $id and revoked_at is null').run({ id, now: now() })
      .changes > 0
  )
}

/** How many keys were ever made, revoked ones too. */
export const countKeys = (db: Database): number =>
  db.query<{ count: number }, []>('select count(*) as count from api_keys').get()?.count ?? 0
