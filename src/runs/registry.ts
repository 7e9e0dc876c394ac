import type { Database } from 'bun:sqlite'
import { deleteChunks, listEndedLogs } from '../db/chunks.ts'
import { newId } from '../db/id.ts'
import { findRun } from '../db/runs.ts'
import { ApiError } from '../errors.ts'
import { parseLastEventId } from '../stream/frame.ts'
import { openStoredLog } from './log.ts'
import { readRun } from './reader.ts'
import { recoverRuns } from './recover.ts'
import { type Execute, type Receipt, Run, type RunInit } from './run.ts'
import { within } from './within.ts'

export interface RunsOptions {
  /** Takes one line for the operator. It never holds what was said. */
  log: (line: string) => void
  /** How long an engine may take to end after its abort. Default 5,000. */
  graceMs?: number
  /** After how long a silence a reader gets a sign of life. Default 15,000. */
  heartbeatMs?: number
}

/** A stream of a run, with the ids for its headers. */
export interface Watched {
  runId: string
  threadId: string
  sandboxId: string
  body: ReadableStream<Uint8Array>
}

/** The runs of this process. */
export interface Runs {
  /** Stores and starts a run. Throws ApiError run_active when its thread has one, shutting_down after `close`. */
  start(init: RunInit, execute: Execute): Run
  /** Reads a run from its first chunk, then follows it. */
  watch(run: Run): Watched
  activeOn(threadId: string): Run | undefined
  /** A sandbox's active runs, youngest first. */
  active(sandboxId: string, threadId?: string): Run[]
  /** Cancels a sandbox's active runs and waits until they have ended. */
  cancel(sandboxId: string, threadId?: string): Promise<Receipt[]>
  /** Cancels a thread's run when nobody reads it and it is no background run; throws ApiError run_active otherwise. */
  supersede(threadId: string): Promise<void>
  /** The youngest active run from its start, or the one of `lastEventId` after that. Undefined: nothing to resume. */
  resume(
    sandboxId: string,
    options?: { threadId?: string | undefined; lastEventId?: string | null | undefined },
  ): Watched | undefined
  /** Refuses new runs, gives active ones `graceMs` to end, then interrupts them. Resolves when all have ended. */
  close(graceMs: number): Promise<void>
  /** To be called once, before any start: ends what a stopped server left active. Returns how many runs that were. */
  recover(): number
  /** Deletes the logs that nobody can resume any more. */
  purge(now: Date): Promise<void>
}

/** How long an ended run can still be resumed. */
const keptMs = 10 * 60_000
const purgeBatch = 2_000

export function createRuns(db: Database, options: RunsOptions): Runs {
  const { log, graceMs = 5_000, heartbeatMs } = options
  const running = new Map<string, Run>()
  let closing = false
  const host = { db, log, graceMs, onEnd: (run: Run) => void running.delete(run.threadId) }

  const watch = ({ id, threadId, sandboxId, log }: Run, after = 0): Watched => ({
    runId: id,
    threadId,
    sandboxId,
    body: readRun(log, Math.min(after, log.count), heartbeatMs),
  })

  const active = (sandboxId: string, threadId?: string) =>
    [...running.values()]
      .filter(run => run.sandboxId === sandboxId && (threadId === undefined || run.threadId === threadId))
      .reverse()

  function watchEnded(runId: string, sandboxId: string, threadId: string | undefined, after: number) {
    const run = findRun(db, runId)
    if (!run?.endedAt || Date.parse(run.endedAt) + keptMs < Date.now()) return undefined
    if (run.sandboxId !== sandboxId || (threadId !== undefined && run.threadId !== threadId)) return undefined
    const body = readRun(openStoredLog(db, runId), after, heartbeatMs)
    return { runId, threadId: run.threadId, sandboxId, body }
  }

  return {
    start(init, execute) {
      if (closing) throw new ApiError('shutting_down', 'The server is shutting down.')
      if (running.has(init.threadId)) throw runActive()
      const run = new Run(newId('run'), init, execute, host)
      running.set(run.threadId, run)
      return run
    },
    watch: run => watch(run),
    activeOn: threadId => running.get(threadId),
    active,
    cancel: (sandboxId, threadId) => Promise.all(active(sandboxId, threadId).map(run => run.cancel())),
    async supersede(threadId) {
      const run = running.get(threadId)
      if (!run) return
      if (run.background || run.readerCount > 0) throw runActive()
      await run.cancel()
    },
    resume(sandboxId, { threadId, lastEventId } = {}) {
      const last = parseLastEventId(lastEventId)
      const runs = active(sandboxId, threadId)
      const run = last ? runs.find(({ id }) => id === last.runId) : runs[0]
      if (run) return watch(run, last?.seq)
      return last && watchEnded(last.runId, sandboxId, threadId, last.seq)
    },
    async close(graceMs) {
      closing = true
      const left = [...running.values()]
      await within(graceMs, Promise.all(left.map(run => run.finished)))
      await Promise.all(left.map(run => run.interrupt('The server is shutting down.')))
    },
    recover: () => recoverRuns(db),
    async purge(now) {
      for (const runId of listEndedLogs(db, new Date(now.getTime() - keptMs).toISOString()))
        while (deleteChunks(db, runId, purgeBatch) === purgeBatch) await new Promise(setImmediate)
    },
  }
}

const runActive = () => new ApiError('run_active', 'This thread has a reply under way. Wait for it, or cancel it.')
