import type { Database } from 'bun:sqlite'
import type { ApiKey, ApiKeyInput } from '../model/key.ts'
import type { LimitTexts } from '../model/limit.ts'
import { isScope } from '../model/scope.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'
import { type Columns, isStringRecord, isStrings, present, readJson } from './row.ts'

type Row = Omit<Columns<ApiKey>, 'scopes' | 'limits'> & { scopes: string | null; limits: string | null }

/** A scope that this version does not know opens nothing. */
const fromRow = <Value extends ApiKey>({ scopes, limits, ...row }: Row): Value => ({
  ...present<Value>(row as Columns<Value>),
  ...(scopes !== null && { scopes: readJson(scopes, 'scopes', isStrings).filter(isScope) }),
  ...(limits !== null && { limits: readJson(limits, 'limits', isStringRecord) }),
})

const columns = `k.id, k.team_id as teamId, k.name, k.hint, k.created_at as createdAt, k.expires_at as expiresAt,
  k.revoked_at as revokedAt, k.scopes, k.limits`

/** Throws when the hash is there already. */
export function insertKey(db: Database, { hash, ...input }: ApiKeyInput): ApiKey {
  mustLast(db)
  const key: ApiKey = { id: newId('key'), ...input, createdAt: now() }
  db.query(
    `insert into api_keys (id, team_id, name, hash, hint, created_at, expires_at, scopes, limits)
     values ($id, $teamId, $name, $hash, $hint, $createdAt, $expiresAt, $scopes, $limits)`,
  ).run({
    expiresAt: null,
    ...key,
    hash,
    scopes: key.scopes ? JSON.stringify(key.scopes) : null,
    limits: key.limits ? JSON.stringify(key.limits) : null,
  })
  return key
}

/** The key with this hash, also when it is expired or revoked: the caller says which it is. */
export function findKeyByHash(db: Database, hash: string): ApiKey | undefined {
  const row = db.query<Row, { hash: string }>(`select ${columns} from api_keys k where k.hash = $hash`).get({ hash })
  return row ? fromRow(row) : undefined
}

export function findKey(db: Database, id: string): ApiKey | undefined {
  const row = db.query<Row, { id: string }>(`select ${columns} from api_keys k where k.id = $id`).get({ id })
  return row ? fromRow(row) : undefined
}

/** Every key with the name of its team, oldest first. */
export const listKeys = (db: Database): (ApiKey & { team: string })[] =>
  db
    .query<Row & { team: string }, []>(
      `select ${columns}, t.name as team from api_keys k join teams t on t.id = k.team_id order by k.id`,
    )
    .all()
    .map(row => fromRow<ApiKey & { team: string }>(row))

/** A team's keys, newest first. */
export const listTeamKeys = (db: Database, teamId: string): ApiKey[] =>
  db
    .query<Row, { teamId: string }>(`select ${columns} from api_keys k where k.team_id = $teamId order by k.id desc`)
    .all({ teamId })
    .map(row => fromRow(row))

/**
 * Revokes a key. Returns false when there is no such key, when it is another team's, or when it is revoked already. Null stands
 * for any team.
 */
export function revokeKey(db: Database, id: string, teamId: string | null = null): boolean {
  mustLast(db)
  return (
    db
      .query(
        `update api_keys set revoked_at = $now
         where id = $id and revoked_at is null and ($teamId is null or team_id = $teamId)`,
      )
      .run({ id, teamId, now: now() }).changes > 0
  )
}

/**
 * Replaces a key's own limits; with an empty object it has the server's. Returns false when there is no such key, or it is
 * another team's.
 */
export function saveKeyLimits(db: Database, id: string, limits: LimitTexts, teamId: string | null = null): boolean {
  mustLast(db)
  const text = Object.keys(limits).length > 0 ? JSON.stringify(limits) : null
  return (
    db
      .query('update api_keys set limits = $text where id = $id and ($teamId is null or team_id = $teamId)')
      .run({ id, text, teamId }).changes > 0
  )
}

/** How many keys were ever made, revoked ones too. */
export const countKeys = (db: Database): number =>
  db.query<{ count: number }, []>('select count(*) as count from api_keys').get()?.count ?? 0
