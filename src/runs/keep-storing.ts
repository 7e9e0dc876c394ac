import type { Database } from 'bun:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeWhenFree } from '../db/busy.ts'
import { findRun } from '../db/runs.ts'
import type { PreparedEnding } from './ending.ts'
import { faultOf } from './fault.ts'
import type { Log } from './log.ts'
import type { RunHost } from './run.ts'

const FIRST_RETRY_MS = 50
const RETRY_MS = 2000

/**
 * Tries to store a run's end until it is. False when it never will be: the run was deleted, or the process ends. Readers
 * wait for a while, then they fail: who comes back after the end was stored gets all of it.
 */
export async function keepStoring(
  { db, log: say, giveUp, readersWaitMs }: RunHost,
  { id, log }: { id: string; log: Log },
  ending: PreparedEnding,
): Promise<boolean> {
  let failure: string | undefined
  let patience: Timer | undefined
  try {
    for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(waitMs * 2, RETRY_MS)) {
      try {
        await writeWhenFree(db, () => ending.store(db))
        if (failure !== undefined) say(`${id}: its end is stored now`)
        return true
      } catch (error) {
        const problem = faultOf(error)
        if (problem !== failure) say(`${id}: its end could not be stored: ${problem}`)
        failure = problem
      }
      patience ??= setTimeout(() => log.fail(), readersWaitMs)
      if (giveUp.aborted || isGone(db, id)) return false
      await sleep(waitMs, undefined, { signal: giveUp }).catch(() => {})
    }
  } finally {
    clearTimeout(patience)
  }
}

/** True when the database says so; one that cannot be read says nothing. */
function isGone(db: Database, runId: string): boolean {
  try {
    return findRun(db, runId) === undefined
  } catch {
    return false
  }
}
