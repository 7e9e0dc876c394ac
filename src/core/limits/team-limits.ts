import type { Database } from 'bun:sqlite'
import { createHolds } from '../../async/hold.ts'
import { countOfTeam, type TeamCount } from '../../db/team-counts.ts'
import { findTeamLimits } from '../../db/teams.ts'
import type { LimitName, LimitValue } from '../../model/limit.ts'
import { readLimits } from './parse.ts'
import { keptRefusal } from './refusals.ts'

/** Checks how much teams may keep. */
export interface TeamLimits {
  /** Throws rate_limit_exceeded when the team has its most of this already. */
  assertRoom(teamId: string, what: TeamCount): void
  /** Checks the same for a sandbox that will be made, and counts it until its row exists or the result is disposed of. */
  holdSandbox(teamId: string): Disposable
}

const MB = 1024 * 1024

const words: Readonly<Record<TeamCount, string>> = {
  sandboxes: 'sandboxes',
  disk: 'MB of files in sandboxes and snapshots',
  agents: 'agents',
  bundles: 'bundles',
  versions: 'versions of agents',
}

export function createTeamLimits(db: Database, server: Readonly<Record<LimitName, LimitValue>>): TeamLimits {
  /** How many sandboxes are being made, by team. */
  const making = createHolds()

  function assertRoom(teamId: string, what: TeamCount): void {
    const name = `team.${what}` as const
    const value = readLimits(findTeamLimits(db, teamId))[name] ?? server[name]
    if (value.count === 0) return
    const kept = countOfTeam(db, teamId, what)
    const count = what === 'disk' ? Math.floor(kept / MB) : kept
    const unfinished = what === 'sandboxes' ? making.count(teamId) : 0
    if (count + unfinished >= value.count) throw keptRefusal(name, value, words[what])
  }

  return {
    assertRoom,
    holdSandbox(teamId) {
      assertRoom(teamId, 'sandboxes')
      assertRoom(teamId, 'disk')
      return making.hold(teamId)
    },
  }
}
