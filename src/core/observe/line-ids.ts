import type { Database } from 'bun:sqlite'
import { findLogPlace } from '../../db/log-place.ts'
import type { Observation } from '../../model/observation.ts'

/** What a line of the log is about. */
export interface LineIds {
  requestId?: string
  runId?: string
  sandboxId?: string
  threadId?: string
  teamId?: string
}

/** Finds what a line of the log is about: the ids in it, and the ids of what those belong to. */
export interface LineIdFinder {
  of(line: string, given?: LineIds): LineIds
  /** Learns from now on which request began a run, and the team, sandbox and thread of what is observed. */
  learn(from: { db: Database; observers: { subscribe(listener: (seen: Observation) => void): Disposable } }): void
}

const ID = /\b(req|run|sbx|thr|team|env)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g
const names = {
  req: 'requestId',
  run: 'runId',
  sbx: 'sandboxId',
  thr: 'threadId',
  team: 'teamId',
  env: 'environmentId',
}
/** The part of a line that is searched: ids stand near its beginning. */
const MAX_LINE = 2000
const MAX_KEPT = 10_000

export function createLineIds(): LineIdFinder {
  const requestOfRun = new Map<string, string>()
  const teamOfRequest = new Map<string, string>()
  let db: Database | undefined

  const keep = (map: Map<string, string>, key: string, value: string) => {
    map.set(key, value)
    const [oldest] = map.keys()
    if (map.size > MAX_KEPT && oldest !== undefined) map.delete(oldest)
  }
  const findPlace = (named: LineIds & { environmentId?: string }) => {
    const { runId, sandboxId, environmentId } = named
    if (!db || (runId ?? sandboxId ?? environmentId) === undefined) return undefined
    try {
      return findLogPlace(db, named)
    } catch {
      // The line may report that the database is locked or broken.
      return undefined
    }
  }

  return {
    of(line, given = {}) {
      const named: LineIds & { environmentId?: string } = {}
      for (const [id, prefix] of line.slice(0, MAX_LINE).matchAll(ID)) {
        const name = names[prefix as keyof typeof names] as keyof typeof named
        named[name] ??= id
      }
      const { environmentId, ...ids } = { ...named, ...given }
      const all: LineIds = { ...findPlace({ ...ids, ...(environmentId !== undefined && { environmentId }) }), ...ids }
      const requestId = all.requestId ?? (all.runId === undefined ? undefined : requestOfRun.get(all.runId))
      const teamId = all.teamId ?? (requestId === undefined ? undefined : teamOfRequest.get(requestId))
      return { ...all, ...(requestId !== undefined && { requestId }), ...(teamId !== undefined && { teamId }) }
    },
    learn(from) {
      db = from.db
      from.observers.subscribe(seen => {
        if (seen.type === 'run.started' && seen.cause?.requestId !== undefined)
          keep(requestOfRun, seen.runId, seen.cause.requestId)
        if (seen.type === 'request.ended' && seen.teamId !== undefined)
          keep(teamOfRequest, seen.cause.requestId, seen.teamId)
      })
    },
  }
}
