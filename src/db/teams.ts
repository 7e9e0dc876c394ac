import type { Database } from 'bun:sqlite'
import type { Team } from '../model/team.ts'
import { newId, now } from './id.ts'
import { inTransaction } from './open.ts'

const columns = 'id, name, created_at as createdAt'

export const findTeam = (db: Database, name: string): Team | undefined =>
  db.query<Team, { name: string }>(`select ${columns} from teams where name = $name`).get({ name }) ?? undefined

/** Throws when there is no such team. */
export function getTeamName(db: Database, id: string): string {
  const row = db.query<{ name: string }, { id: string }>('select name from teams where id = $id').get({ id })
  if (!row) throw new Error('the database has lost a team')
  return row.name
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
