import type { Database } from 'bun:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeWhenFree } from '../db/busy.ts'
import { isFull, lasting } from '../db/lasting.ts'
import { findRun } from '../db/runs.ts'
import type { PreparedEnding } from './ending.ts'
import { describeFault } from './fault.ts'
import type { Log } from './log.ts'

const FIRST_RETRY_MS = 50
const RETRY_MS = 2000

export interface StoringOptions {
  db: Database
  /** Writes one line to the operator's log. Never what a user or an agent wrote. */
  log: (line: string, level?: 'error') => void
  /** How long readers wait for the end of a run that cannot be stored. */
  readersWaitMs: number
  /** Aborts when the process ends. The next start recovers what is not stored by then. */
  giveUp: AbortSignal
}

/**
 * Retries until a run's end is stored. False when it never will be: the run was deleted, or the process ends. Readers wait
 * for a while, then they fail; a reader that reconnects after the end was stored gets everything.
 */
export async function keepStoring(
  { db, log: report, giveUp, readersWaitMs }: StoringOptions,
  { id, log }: { id: string; log: Log },
  ending: PreparedEnding,
): Promise<boolean> {
  let failure: string | undefined
  let patience: Timer | undefined
  try {
    for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(waitMs * 2, RETRY_MS)) {
      try {
        await writeWhenFree(db, () => ending.store(db))
        if (failure !== undefined) report(`${id}: its end is stored now`)
        return true
      } catch (error) {
        const problem = describeFault(error)
        if (problem !== failure) report(`${id}: its end could not be stored: ${problem}`)
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

/** Waits until the end is on the disk. Resolves to false when that failed, and the part that is not there must not be shown. */
export async function outlasts({ db, log }: Pick<StoringOptions, 'db' | 'log'>, id: string): Promise<boolean> {
  try {
    await lasting(db)
    return true
  } catch (error) {
    log(`${id}: its end may not outlast a loss of power: ${describeFault(error)}`)
    return !isFull(db)
  }
}

/** False also when the database cannot be read: then it is not known. */
function isGone(db: Database, runId: string): boolean {
  try {
    return findRun(db, runId) === undefined
  } catch {
    return false
  }
}
