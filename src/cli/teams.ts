import type { Database } from 'bun:sqlite'
import { DEFAULT_TEAM, ensureTeamWithEcho } from '../core/access/teams.ts'
import { teamSubjects } from '../core/limits/parse.ts'
import { inTransaction } from '../db/open.ts'
import { closeTeam, countContents, deleteTeam, hasTeam, type TeamContents } from '../db/remove-team.ts'
import { findTeam, listTeams, saveTeamLimits } from '../db/teams.ts'
import type { AuditFact } from '../model/audit.ts'
import type { Team } from '../model/team.ts'
import { openData } from '../start/data.ts'
import { changeLimits, describeLimits } from './change-limits.ts'
import { type Given, UsageError } from './command-line.ts'
import { readPlace } from './data-place.ts'
import { keepCommand } from './keep-command.ts'
import { printList } from './list.ts'
import { hasServer } from './running-servers.ts'

const LOOK_MS = 200

/** Works beside a running server, which sees the change at once. */
export async function teams(given: Given): Promise<void> {
  const { config, tellIfUnused } = await readPlace(given)
  const { dataDirectory } = config
  const db = await openData(dataDirectory)
  try {
    if (given.action === 'list') return list(given, db)
    const [name = '', ...changes] = given.words
    if (given.action === 'create') create(given, db, name)
    if (given.action === 'limit') {
      const team = getTeam(db, name)
      const limits = changeLimits(team.limits ?? {}, changes, teamSubjects)
      inTransaction(db, () => {
        saveTeamLimits(db, team.id, limits)
        keep(db, 'limit', team, { action: 'team.limited', detail: { ...limits } })
      })
      console.log(describeLimits(limits))
    }
    if (given.action === 'remove') return await remove(given, db, { name, dataDirectory })
    tellIfUnused()
  } finally {
    db.close()
  }
}

function list(given: Given, db: Database): void {
  const rows = listTeams(db).map(team => ({ ...team, ...countContents(db, team.id) }))
  printList(given, rows, {
    name: each => each.name,
    id: each => each.id,
    created: each => each.createdAt,
    sandboxes: each => String(each.sandboxes),
    keys: each => String(each.keys),
    agents: each => String(each.agents),
    limits: each => describeLimits(each.limits),
  })
}

function create(given: Given, db: Database, name: string): void {
  if (findTeam(db, name)) throw new UsageError(`There is a team ${name}.`)
  const limits = changeLimits({}, given.all('limit'), teamSubjects)
  const { id } = inTransaction(db, () => {
    const team = ensureTeamWithEcho(db, name)
    saveTeamLimits(db, team.id, limits)
    keep(db, 'create', team, { action: 'team.created', detail: { ...limits } })
    return team
  })
  console.log(id)
}

/** Adds the audit row of a change to a team. Call it in the transaction of the change. */
const keep = (
  db: Database,
  command: string,
  { id: teamId, name: team }: Pick<Team, 'id' | 'name'>,
  change: Pick<AuditFact, 'action' | 'detail'>,
): void => keepCommand(db, `teams ${command}`, { teamId, target: { teamId, team }, ...change })

/**
 * Removes a team. A running server removes the sandboxes. Resolves when the team is gone, or when no server runs that could
 * remove it.
 */
async function remove(given: Given, db: Database, { name, dataDirectory }: { name: string; dataDirectory: string }) {
  const { id } = getTeam(db, name)
  if (name === DEFAULT_TEAM) throw new UsageError(`The team ${DEFAULT_TEAM} cannot be removed.`)
  const contents = countContents(db, id)
  const isEmpty = Object.values(contents).every(count => count === 0)
  if (!isEmpty && !given.has('with-everything'))
    throw new UsageError(`${name} has ${describe(contents)}: remove them first, or say --with-everything.`)
  inTransaction(db, () => {
    closeTeam(db, id)
    keep(db, 'remove', { id, name }, { action: 'team.removed', detail: { ...contents } })
  })
  // A team without environments is removed at once.
  if (deleteTeam(db, id)) return console.log(`${name} is removed.`)
  console.log(`${name} is closed: its keys are revoked.`)
  while (hasTeam(db, id)) {
    if (!hasServer(dataDirectory)) {
      console.error(`threadbox: the next server on ${dataDirectory} removes its sandboxes when it starts`)
      return
    }
    await Bun.sleep(LOOK_MS)
  }
  console.log(`${name} is removed, with ${describe(contents)}.`)
}

function getTeam(db: Database, name: string): Team {
  const team = findTeam(db, name)
  if (!team) throw new UsageError(`There is no team ${name}.`)
  return team
}

const describe = ({ sandboxes, threads, keys, agents }: TeamContents): string =>
  `${sandboxes} sandboxes, ${threads} threads, ${keys} keys and ${agents} agents`
