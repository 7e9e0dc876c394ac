import type { Database } from 'bun:sqlite'
import { saveAgent } from '../../db/agents.ts'
import { inTransaction } from '../../db/open.ts'
import { ensureTeam, findTeam } from '../../db/teams.ts'
import type { Team } from '../../model/team.ts'

export const DEFAULT_TEAM = 'default'

/** Finds the team of this name, or makes it. A new team gets the agent `echo`, so that it has an agent to talk to. */
export const ensureTeamWithEcho = (db: Database, name: string): Team =>
  // Looked up first without the lock for writing: each request by the configured key comes here.
  findTeam(db, name) ??
  inTransaction(db, () => {
    const found = findTeam(db, name)
    if (found) return found
    const team = ensureTeam(db, name)
    const sandbox = { files: {}, envs: {}, setup: [], limits: {} }
    saveAgent(db, team.id, { slug: 'echo', name: 'Echo', engine: 'echo', sandbox, options: {} })
    return team
  })
