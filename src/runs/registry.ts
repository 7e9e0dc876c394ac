import type { Database } from 'bun:sqlite'
import { settlesWithin } from '../async/timeout.ts'
import { createTurns } from '../async/turns.ts'
import { newId } from '../db/id.ts'
import { findRun, listActiveRuns } from '../db/runs.ts'
import { ApiError, messageOf } from '../errors.ts'
import type { Observe } from '../model/observation.ts'
import type { RunRecord } from '../model/run.ts'
import type { Feed } from '../stream/feed.ts'
import { parseLastEventId } from '../stream/frame.ts'
import { deleteOldLogs, putAwayLogs } from './kept-logs.ts'
import { isBeyond, LOST_SEQS, openStoredLog } from './log.ts'
import { createPageCache } from './page-cache.ts'
import { readRun, refuseReader } from './reader.ts'
import { recoverRun } from './recover.ts'
import { type Execute, type Receipt, Run, type RunHost } from './run.ts'
import type { RunInit } from './run-init.ts'
import { createSilences } from './silences.ts'

export interface RunsOptions {
  /** Writes one line to the operator's log. Never what a user or an agent wrote. */
  log: (line: string, level?: 'error') => void
  /** Called when each run begins and when it ends. */
  observe?: Observe
  /** How long an engine may take to end after its abort. Default 5,000. */
  graceMs?: number
  /** How long readers wait for the end of a run that cannot be stored. Default 60,000. */
  readersWaitMs?: number
  /** Called when a thread's run is over and its end is stored: the thread is free. Must not throw. */
  onFree?: (threadId: string) => void
  /** After this silence a reader gets a comment that keeps the connection open. Default 15,000. */
  heartbeatMs?: number
}

/** A stream of a run, with the ids for its headers. */
export interface Watched {
  runId: string
  threadId: string
  sandboxId: string
  feed: Feed
}

/** The runs of this process. */
export interface Runs {
  /** Stores and starts a run. Throws ApiError run_active when its thread has one, shutting_down after `close`. */
  start(init: RunInit, execute: Execute): Run
  /** Gives a stream of a run from its first chunk, and follows it. */
  watch(run: Run): Watched
  activeOn(threadId: string): Run | undefined
  /** Counts the active runs and their readers. */
  count(): { active: number; readers: number }
  /** Lists a sandbox's active runs, youngest first. */
  active(sandboxId: string, threadId?: string): Run[]
  /**
   * Cancels a sandbox's active runs and waits until they have ended. Throws server_busy when the end of one cannot
   * be stored within five seconds; storing goes on after that.
   */
  cancel(sandboxId: string, threadId?: string): Promise<Receipt[]>
  /** Cancels runs that are about to be deleted and waits until their engines have stopped. Does not wait for the store. */
  silence(sandboxId: string, threadId?: string): Promise<void>
  /** Cancels a thread's run when it has no reader and is not a background run; throws ApiError run_active otherwise. */
  supersede(threadId: string): Promise<void>
  /** Follows the youngest active run from its start, or the run of `lastEventId` from there. Undefined: there is nothing to resume. */
  resume(
    sandboxId: string,
    options?: { threadId?: string | undefined; lastEventId?: string | null | undefined },
  ): Watched | undefined
  /** Refuses new runs, gives active ones `graceMs` to end, then interrupts them. Resolves when all have ended. */
  close(graceMs: number): Promise<void>
  /**
   * Call it once, before any `start`: ends the runs that a stopped server left active. `isPowerLost`: the machine was
   * started since, so the last chunks that readers have may be gone. Returns how many runs these were.
   */
  recover(isPowerLost?: boolean): number
  /** Compresses the logs that can no longer be resumed, and deletes old ones. */
  purge(now: Date): Promise<void>
}

/** How long an ended run can still be resumed. */
const KEPT_MS = 10 * 60_000
/** How long a cancel waits until the end is stored. */
const STORED_WITHIN_MS = 5_000
/** How long the end of the process waits for runs that cannot be stored. */
const LAST_TRIES_MS = 2_000

/** Over 100 lines: the active runs are one state that every operation shares. */
export function createRuns(db: Database, options: RunsOptions): Runs {
  const { log, graceMs = 5_000, heartbeatMs = 15_000, readersWaitMs = 60_000, observe = () => {} } = options
  const silences = createSilences(heartbeatMs)
  const pages = createPageCache()
  const running = new Map<string, Run>()
  let closing = false
  const giveUp = new AbortController()
  /** The runs that a stopped server left active and that have no end yet. */
  let unrecovered: RunRecord[] = []
  const reported = new Set<string>()
  let lostSeqs = 0
  let isPurging = false
  const host = { db, log, graceMs, readersWaitMs, giveUp: giveUp.signal, turns: createTurns(), pages }

  const watch = ({ id, threadId, sandboxId, log }: Run, after = 0): Watched => ({
    runId: id,
    threadId,
    sandboxId,
    feed: after > log.count ? refuseReader() : readRun(log, after, silences),
  })

  /** For a client that knows nothing of the run. */
  function replay(run: Run): Watched {
    const { preface } = run
    if (!preface) return watch(run)
    const { id, threadId, sandboxId } = run
    return { runId: id, threadId, sandboxId, feed: readRun(run.log, 1, silences, preface) }
  }

  const active = (sandboxId: string, threadId?: string) =>
    [...running.values()]
      .filter(run => run.sandboxId === sandboxId && (threadId === undefined || run.threadId === threadId))
      .reverse()

  function watchEnded(runId: string, sandboxId: string, threadId: string | undefined, after: number) {
    const run = findRun(db, runId)
    if (!run?.endedAt || Date.parse(run.endedAt) + KEPT_MS < Date.now()) return undefined
    if (run.sandboxId !== sandboxId || (threadId !== undefined && run.threadId !== threadId)) return undefined
    const feed = isBeyond(db, runId, after)
      ? refuseReader()
      : readRun(openStoredLog({ db, pages }, { runId, profile: run.profile }), after, silences)
    return { runId, threadId: run.threadId, sandboxId, feed }
  }

  /** A run that cannot be ended now, as on a full disk, is tried again later; the server starts without it. */
  function recoverLeft(): void {
    unrecovered = unrecovered.filter(run => {
      try {
        if (findRun(db, run.id)?.status === 'active') recoverRun(db, run, lostSeqs)
        return false
      } catch (error) {
        if (!reported.has(run.id)) log(`${run.id}: its end could not be stored: ${messageOf(error)}`, 'error')
        reported.add(run.id)
        return true
      }
    })
  }

  return {
    start(init, execute) {
      if (closing) throw new ApiError('shutting_down', 'The server is shutting down.')
      if (running.has(init.threadId)) throw runActive()
      const { teamId, sandboxId, threadId, agentSlug, engine, model, background = false, cause } = init
      const runId = newId('run')
      const about = { runId, teamId, sandboxId, threadId, agentSlug, engine, ...(cause && { cause }) }
      const onEnd: RunHost['onEnd'] = end => {
        running.delete(threadId)
        observe({ type: 'run.ended', ...about, ...end })
        options.onFree?.(threadId)
      }
      const run = new Run(runId, init, execute, { ...host, onEnd })
      running.set(threadId, run)
      observe({ type: 'run.started', ...about, isBackground: background, ...(model !== undefined && { model }) })
      return run
    },
    watch: run => watch(run),
    activeOn: threadId => running.get(threadId),
    count() {
      const readers = [...running.values()].reduce((sum, { readerCount }) => sum + readerCount, 0)
      return { active: running.size, readers }
    },
    active,
    cancel: (sandboxId, threadId) => Promise.all(active(sandboxId, threadId).map(cancelled)),
    async silence(sandboxId, threadId) {
      for (;;) {
        const left = active(sandboxId, threadId).filter(run => !run.isOver)
        if (left.length === 0) return
        for (const run of left) void run.cancel()
        await Promise.all(left.map(run => run.silenced))
      }
    },
    async supersede(threadId) {
      const run = running.get(threadId)
      if (!run) return
      if (run.background || run.readerCount > 0) throw runActive()
      await cancelled(run)
    },
    resume(sandboxId, { threadId, lastEventId } = {}) {
      const last = parseLastEventId(lastEventId)
      const runs = active(sandboxId, threadId)
      const run = last ? runs.find(({ id }) => id === last.runId) : runs[0]
      if (run) return last ? watch(run, last.seq) : replay(run)
      return last && watchEnded(last.runId, sandboxId, threadId, last.seq)
    },
    async close(graceMs) {
      closing = true
      const left = [...running.values()]
      await settlesWithin(graceMs, Promise.all(left.map(run => run.finished)))
      const ended = Promise.all(left.map(run => run.interrupt('The server is shutting down.')))
      await settlesWithin(LAST_TRIES_MS, ended)
      giveUp.abort()
      await ended
    },
    recover(isPowerLost = false) {
      lostSeqs = isPowerLost ? LOST_SEQS : 0
      unrecovered = listActiveRuns(db)
      const { length } = unrecovered
      recoverLeft()
      return length
    },
    async purge(now) {
      pages.age()
      recoverLeft()
      if (isPurging) return
      isPurging = true
      try {
        await putAwayLogs(db, new Date(now.getTime() - KEPT_MS))
        await deleteOldLogs(db, now)
      } finally {
        isPurging = false
      }
    },
  }
}

async function cancelled(run: Run): Promise<Receipt> {
  const ended = run.cancel()
  await settlesWithin(STORED_WITHIN_MS, ended)
  if (run.log.ended) return await ended
  throw new ApiError('server_busy', 'The reply is over, but its end cannot be stored. The server keeps trying.')
}

const runActive = () => new ApiError('run_active', 'This thread has a reply under way. Wait for it, or cancel it.')
