import { setTimeout as sleep } from 'node:timers/promises'
import { writeWhenFree } from '../../db/busy.ts'
import { lasting } from '../../db/lasting.ts'
import { inTransaction } from '../../db/open.ts'
import { endScheduleRun, listOpenScheduleRuns } from '../../db/schedule-runs.ts'
import { findNextDue, findSchedule, listDueSchedules, listLaterSchedules } from '../../db/schedules.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { ScheduleRun } from '../../model/schedule.ts'
import type { Runtime, Scheduler } from '../runtime.ts'
import { noteDue, setNext } from './due.ts'
import { isForItsTurn, runSchedule } from './run-schedule.ts'

/** How many runs go on at once. When many are due in one minute, they begin in order, and one team leaves room for the others. */
const AT_ONCE = 64
const AT_ONCE_PER_TEAM = 16
/** How many schedules one transaction deals with. */
const STEP = 200
/** The longest pause between looks: the clock may be set while nothing is due. */
const LOOK_MS = 60_000
/** How long the next try waits after a failure of this server, such as a full disk. */
const FAILED_MS = 10_000
/** How often a run that waits for room under its key's limit tries again. */
const TURN_MS = 1000

/** The clock that schedules follow. */
export interface Clock {
  now(): Date
  /** Calls back once, after this long at the earliest, unless the result is disposed of. */
  after(ms: number, call: () => void): Disposable
}

const systemClock: Clock = {
  now: () => new Date(),
  after(ms, call) {
    const timer = setTimeout(call, ms)
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  },
}

/** Over 100 lines: the running schedules and the one timer share their state. */
export function createScheduler(runtimeOf: () => Runtime, clock: Clock = systemClock): Scheduler {
  const closing = new AbortController()
  const running = new Map<string, { teamId: string; ended: Promise<void> }>()
  let isStarted = false
  let timer: Disposable | undefined
  let lookedAt = Number.POSITIVE_INFINITY
  let looking: Promise<void> | undefined
  let isWoken = false

  const countOf = (teamId: string) => [...running.values()].filter(each => each.teamId === teamId).length

  /** Stores what is due in several transactions, so that requests get their turns. */
  async function noteAllDue(now: Date): Promise<void> {
    const { db, log } = runtimeOf()
    const at = now.toISOString()
    // At the first time and after the clock was set back, the stored due times may be too late and are computed again.
    if (now.getTime() < lookedAt) {
      await writeWhenFree(db, () =>
        inTransaction(db, () => {
          for (const each of listLaterSchedules(db, at)) setNext(db, each, now, log)
        }),
      )
    }
    lookedAt = now.getTime()
    for (;;) {
      const due = listDueSchedules(db, at, STEP)
      if (due.length === 0) return
      await writeWhenFree(db, () =>
        inTransaction(db, () => {
          for (const each of due) noteDue(db, each, now, log)
        }),
      )
      await Bun.sleep(0)
    }
  }

  async function perform(run: ScheduleRun): Promise<void> {
    const runtime = runtimeOf()
    const { db, log } = runtime
    try {
      const schedule = findSchedule(db, run.scheduleId)
      if (!schedule) return
      const isHeldBack = schedule.pausedAt !== undefined && run.trigger !== 'request' && run.status === 'due'
      const end = isHeldBack
        ? ({ status: 'skipped', error: 'The schedule was paused before it had begun.' } as const)
        : await runSchedule(runtime, schedule, run, closing.signal)
      if (end) await writeWhenFree(db, () => endScheduleRun(db, run.id, end))
    } catch (error) {
      const waits = error instanceof ApiError && isForItsTurn(error)
      if (!waits) log(`${run.id}: ${messageOf(error)}`, 'error')
      await sleep(waits ? TURN_MS : FAILED_MS, undefined, { signal: closing.signal }).catch(() => {})
    }
  }

  function begin(run: ScheduleRun, teamId: string): void {
    const ended = perform(run).finally(() => {
      running.delete(run.id)
      wake()
    })
    running.set(run.id, { teamId, ended })
  }

  function beginStored(): void {
    const { db } = runtimeOf()
    while (running.size < AT_ONCE) {
      const teams = [...new Set([...running.values()].map(({ teamId }) => teamId))]
      const open = listOpenScheduleRuns(db, {
        except: [...running.keys()],
        exceptTeams: teams.filter(id => countOf(id) >= AT_ONCE_PER_TEAM),
        limit: AT_ONCE - running.size,
      })
      if (open.length === 0) return
      for (const run of open) {
        const teamId = findSchedule(db, run.scheduleId)?.teamId
        if (teamId !== undefined && countOf(teamId) < AT_ONCE_PER_TEAM) begin(run, teamId)
      }
    }
  }

  async function look(): Promise<void> {
    const { db, log } = runtimeOf()
    timer?.[Symbol.dispose]()
    let waitMs = LOOK_MS
    try {
      const now = clock.now()
      await noteAllDue(now)
      // The run begins only after the database can no longer lose that it began: otherwise a next server would begin it again.
      await lasting(db)
      if (closing.signal.aborted) return
      beginStored()
      const next = findNextDue(db)
      if (next !== undefined) waitMs = Math.min(LOOK_MS, Math.max(0, Date.parse(next) - clock.now().getTime()))
    } catch (error) {
      if (closing.signal.aborted) return
      log(`schedules: ${messageOf(error)}`, 'error')
      waitMs = FAILED_MS
    }
    timer = clock.after(waitMs, wake)
  }

  function wake(): void {
    if (!isStarted || closing.signal.aborted) return
    isWoken = true
    looking ??= (async () => {
      while (isWoken && !closing.signal.aborted) {
        isWoken = false
        await look()
      }
    })().finally(() => {
      looking = undefined
    })
  }

  return {
    start() {
      isStarted = true
      wake()
    },
    wake,
    now: () => clock.now(),
    async close() {
      closing.abort()
      timer?.[Symbol.dispose]()
      await looking
      await Promise.all([...running.values()].map(({ ended }) => ended))
    },
  }
}
