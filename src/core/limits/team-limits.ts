import type { Database } from 'bun:sqlite'
import { createHolds } from '../../async/hold.ts'
import { countOfTeam, type TeamCount } from '../../db/team-counts.ts'
import { findTeamLimits } from '../../db/teams.ts'
import type { LimitName, LimitValue } from '../../model/limit.ts'
import { readLimits } from './parse.ts'
import { keptRefusal } from './refusals.ts'

/** What teams may keep. */
export interface TeamLimits {
  /** Throws rate_limit_exceeded when the team has as many as it may have. */
  assertRoom(teamId: string, what: TeamCount): void
  /** The same for a sandbox that is to be made: it counts until its row is there, or until it is disposed of. */
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
  /** Sandboxes that are being made. */
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
