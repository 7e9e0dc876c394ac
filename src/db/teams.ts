import type { Database } from 'bun:sqlite'
import type { LimitTexts } from '../model/limit.ts'
import type { Team } from '../model/team.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'
import { inTransaction } from './open.ts'
import { type Columns, isStringRecord, present, readJson } from './row.ts'

type Row = Omit<Columns<Team>, 'limits'> & { limits: string | null }

const columns = 'id, name, created_at as createdAt, limits'

const fromRow = ({ limits, ...row }: Row): Team => ({
  ...present<Team>(row as Columns<Team>),
  ...(limits !== null && { limits: readJson(limits, 'limits', isStringRecord) }),
})

export function findTeam(db: Database, name: string): Team | undefined {
  const row = db.query<Row, { name: string }>(`select ${columns} from teams where name = $name`).get({ name })
  return row ? fromRow(row) : undefined
}

/** All teams, oldest first. */
export const listTeams = (db: Database): Team[] =>
  db.query<Row, []>(`select ${columns} from teams order by id`).all().map(fromRow)

/** Throws when there is no such team. */
export function getTeamName(db: Database, id: string): string {
  const row = db.query<{ name: string }, { id: string }>('select name from teams where id = $id').get({ id })
  if (!row) throw new Error('the database has lost a team')
  return row.name
}

/** A team's own limits, which replace the server's. */
export function findTeamLimits(db: Database, id: string): LimitTexts {
  const row = db.query<{ limits: string | null }, { id: string }>('select limits from teams where id = $id').get({ id })
  return row?.limits ? readJson(row.limits, 'limits', isStringRecord) : {}
}

/** Replaces a team's own limits; with an empty object it has the server's. */
export function saveTeamLimits(db: Database, id: string, limits: LimitTexts): void {
  mustLast(db)
  const text = Object.keys(limits).length > 0 ? JSON.stringify(limits) : null
  db.query('update teams set limits = $text where id = $id').run({ id, text })
}

/** The team of this name, made when there is none. */
export const ensureTeam = (db: Database, name: string): Team =>
  inTransaction(db, () => {
    const found = findTeam(db, name)
    if (found) return found
    const team = { id: newId('team'), name, createdAt: now() }
    db.query('insert into teams (id, name, created_at) values ($id, $name, $createdAt)').run(team)
    return team
  })
