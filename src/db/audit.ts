import type { Database } from 'bun:sqlite'
import type { AuditFact, AuditHead, AuditLink, AuditPage } from '../model/audit.ts'
import { canonicalJson } from '../read/canonical-json.ts'
import { now } from './id.ts'
import { inTransaction } from './open.ts'

/** The hash of a link. A shell computes it with `printf '%s\n%s' BEFORE ENTRY | sha256sum`. */
export const linkHash = (before: string, entry: string): string =>
  new Bun.CryptoHasher('sha256').update(`${before}\n${entry}`).digest('hex')

/**
 * Adds rows to the chain in one transaction; inside another transaction, they are committed with that one. The last link is read
 * under the write lock, so that two processes cannot add to the same one. Times never decrease along the chain.
 */
export const appendAudit = (db: Database, facts: readonly AuditFact[]): void =>
  inTransaction(db, () => {
    let { seq, hash, time } = findAuditHead(db)
    // The numbers of rows that somebody has removed from the end are not used again, so the gap stays visible.
    seq = Math.max(seq, countAuditEver(db))
    const insert = db.query('insert into audit (seq, entry, hash) values ($seq, $entry, $hash)')
    for (const { time: at = now(), actor, action, target, outcome, teamId, detail } of facts) {
      seq += 1
      if (at > time) time = at
      const entry = canonicalJson({ seq, time, teamId, actor: { ...actor }, action, target, outcome, detail })
      hash = linkHash(hash, entry)
      insert.run({ seq, entry, hash })
    }
  })

/** The last link, or the anchor when there is no link. */
export const findAuditHead = (db: Database): AuditHead =>
  db.query<AuditHead, []>('select seq, hash, time from audit order by seq desc limit 1').get() ?? getAuditAnchor(db)

/** The place from which the first remaining link continues. Throws when somebody has removed it. */
export function getAuditAnchor(db: Database): AuditHead {
  const anchor = db.query<AuditHead, []>('select seq, hash, time from audit_anchor').get()
  if (!anchor) throw new Error('the audit log has lost the place where it begins')
  return anchor
}

/** When the first remaining link was made; undefined when there is none. */
export const findAuditBegin = (db: Database): string | undefined =>
  db.query<{ time: string }, []>('select time from audit order by seq limit 1').get()?.time

/** How many links were ever added, as SQLite counts outside of the table. */
export const countAuditEver = (db: Database): number =>
  db.query<{ seq: number }, []>(`select seq from sqlite_sequence where name = 'audit'`).get()?.seq ?? 0

/** The links after a number, in the order of the chain. */
export const listAuditAfter = (db: Database, seq: number, limit: number): AuditLink[] =>
  db
    .query<AuditLink, { seq: number; limit: number }>(
      'select seq, entry, hash from audit where seq > $seq order by seq limit $limit',
    )
    .all({ seq, limit })

/** A page of links, newest first. With a team it takes as long in a large log as in a small one. */
export function listAudit(db: Database, { limit, teamId, action, ...page }: AuditPage): AuditLink[] {
  const range = {
    limit,
    before: Math.min(page.before ?? Number.MAX_SAFE_INTEGER, seqSince(db, page.until)),
    first: page.since === undefined ? 0 : seqSince(db, page.since),
  }
  if (teamId !== undefined) return listTeamAudit(db, teamId, action, range)
  return db
    .query<AuditLink, Record<string, string | number | null>>(
      `select seq, entry, hash from audit
       where seq < $before and seq >= $first
         and ($action is null or action = $action or (action >= $action || '.' and action < $action || '/'))
       order by seq desc limit $limit`,
    )
    .all({ ...range, action: action ?? null })
}

interface Range {
  limit: number
  before: number
  first: number
}

/**
 * Finds the newest rows of each action by the index, and of these the newest: so an action with few rows, or none, does not need
 * a search of all.
 */
function listTeamAudit(db: Database, teamId: string, action: string | undefined, range: Range): AuditLink[] {
  const ofAction = db.query<{ seq: number }, Record<string, string | number>>(
    `select seq from audit indexed by audit_team
     where team_id = $teamId and action = $action and seq < $before and seq >= $first order by seq desc limit $limit`,
  )
  const link = db.query<AuditLink, { seq: number }>('select seq, entry, hash from audit where seq = $seq')
  return listTeamActions(db, teamId)
    .filter(each => action === undefined || each === action || each.startsWith(`${action}.`))
    .flatMap(each => ofAction.all({ ...range, teamId, action: each }))
    .sort((a, b) => b.seq - a.seq)
    .slice(0, range.limit)
    .flatMap(({ seq }) => link.get({ seq }) ?? [])
}

/** Lists the actions of which a team has rows, with one step in the index for each. There are some dozens. */
function listTeamActions(db: Database, teamId: string): string[] {
  const next = db.query<{ action: string | null }, { teamId: string; after: string }>(
    'select min(action) as action from audit indexed by audit_team where team_id = $teamId and action > $after',
  )
  const actions: string[] = []
  for (let after = ''; ; ) {
    const action = next.get({ teamId, after })?.action
    if (action == null) return actions
    actions.push(action)
    after = action
  }
}

/**
 * The number of the first link that is not before this moment, or the number after the last link. Times grow along the chain, so
 * a few looks find it.
 */
function seqSince(db: Database, moment: string | undefined): number {
  if (moment === undefined) return Number.MAX_SAFE_INTEGER
  const timeAt = db.query<{ time: string }, { seq: number }>('select time from audit where seq = $seq')
  let low = getAuditAnchor(db).seq + 1
  let high = findAuditHead(db).seq + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((timeAt.get({ seq: middle })?.time ?? '') < moment) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Removes at most `limit` links from before this moment. The anchor then has the hash from which the chain continues. Returns how
 * many were removed.
 */
export const cutAudit = (db: Database, before: string, limit: number): number =>
  inTransaction(db, () => {
    const { seq: from } = getAuditAnchor(db)
    const last = Math.min(seqSince(db, before) - 1, from + limit)
    const cut = db
      .query<AuditHead, { last: number }>(
        'select seq, hash, time from audit where seq <= $last order by seq desc limit 1',
      )
      .get({ last })
    if (!cut || cut.seq <= from) return 0
    appendAudit(db, [{ actor: {}, action: 'audit.cut', target: { seq: cut.seq, hash: cut.hash }, outcome: 'done' }])
    db.query('update audit_anchor set seq = $seq, hash = $hash, time = $time').run({ ...cut })
    db.query('delete from audit where seq <= $last').run({ last: cut.seq })
    return last - from
  })
