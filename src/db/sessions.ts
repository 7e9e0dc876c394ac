import type { Database } from 'bun:sqlite'
import type { Session } from '../model/session.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'
import { type Columns, present } from './row.ts'

type Row = Columns<Session>

const columns = `id, team_id as teamId, key_id as keyId, configured_key_hash as configuredKeyHash, browser,
  created_at as createdAt, expires_at as expiresAt`

/** Stores a session, and removes those that have expired. */
export function insertSession(db: Database, { hash, ...input }: Omit<Session, 'id' | 'createdAt'> & { hash: string }) {
  const session: Session = { id: newId('ses'), ...input, createdAt: now() }
  db.query('delete from sessions where expires_at <= $now').run({ now: session.createdAt })
  db.query(
    `insert into sessions (id, team_id, key_id, configured_key_hash, hash, browser, created_at, expires_at)
     values ($id, $teamId, $keyId, $configuredKeyHash, $hash, $browser, $createdAt, $expiresAt)`,
  ).run({ keyId: null, configuredKeyHash: null, ...session, hash })
  return session
}

/** The session with this hash, also when it has expired. */
export function findSessionByHash(db: Database, hash: string): Session | undefined {
  const row = db.query<Row, { hash: string }>(`select ${columns} from sessions where hash = $hash`).get({ hash })
  return row ? present<Session>(row) : undefined
}

/** The sessions of a team, newest first. */
export const listSessions = (db: Database, teamId: string): Session[] =>
  db
    .query<Row, { teamId: string; now: string }>(
      `select ${columns} from sessions where team_id = $teamId and expires_at > $now order by id desc`,
    )
    .all({ teamId, now: now() })
    .map(row => present<Session>(row))

/** Returns false when the team has no such session. */
export function deleteSession(db: Database, teamId: string, id: string): boolean {
  mustLast(db)
  return db.query('delete from sessions where team_id = $teamId and id = $id').run({ teamId, id }).changes > 0
}

export interface SignInLink {
  teamId: string
  keyId?: string
  expiresAt: string
}

/** Stores a link that signs in once, and removes those that have expired. */
export function insertSignInLink(db: Database, link: SignInLink & { hash: string }): void {
  db.query('delete from sign_in_links where expires_at <= $now').run({ now: now() })
  db.query(
    'insert into sign_in_links (hash, team_id, key_id, expires_at) values ($hash, $teamId, $keyId, $expiresAt)',
  ).run({ keyId: null, ...link })
}

/**
 * Takes a link: of two calls at once, only one gets it. Returns undefined when no link has this hash, or when it has expired.
 * Anyone may call this, so in that case nothing is written to the disk.
 */
export function takeSignInLink(db: Database, hash: string): SignInLink | undefined {
  const row = db
    .query<Columns<SignInLink>, { hash: string; now: string }>(
      `delete from sign_in_links where hash = $hash and expires_at > $now
       returning team_id as teamId, key_id as keyId, expires_at as expiresAt`,
    )
    .get({ hash, now: now() })
  if (!row) return undefined
  mustLast(db)
  return present<SignInLink>(row)
}
