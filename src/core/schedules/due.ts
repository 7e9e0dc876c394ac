import type { Database } from 'bun:sqlite'
import { newId } from '../../db/id.ts'
import { findKey } from '../../db/keys.ts'
import { findSandbox } from '../../db/sandboxes.ts'
import { findOpenScheduleRun, insertScheduleRun } from '../../db/schedule-runs.ts'
import { pauseForKey, setNextDue, setSharedSandbox } from '../../db/schedules.ts'
import { messageOf } from '../../errors.ts'
import type { Schedule } from '../../model/schedule.ts'
import type { Caller } from '../access/caller.ts'
import { assertUsable, callerOf } from '../access/keys.ts'
import { nextTime, type Times } from './cron.ts'

/** A schedule that is found to be due later than this counts as missed. */
const LATE_MS = 60_000
/** When the clock is set back by more than this, it was wrong before, and the moments dealt with then do not count. */
const SET_BACK_MS = 3_600_000

/**
 * When a schedule is due next: after now, and after the moment that was dealt with last. Undefined when it is never due again.
 */
export function findNext(schedule: Times & Pick<Schedule, 'lastDueAt'>, now: Date): string | undefined {
  const last = Date.parse(schedule.lastDueAt ?? '')
  const isAhead = last > now.getTime() && last - now.getTime() <= SET_BACK_MS
  return nextTime(schedule, isAhead ? new Date(last) : now)
}

/** Does what `findNext` does; undefined also when this version cannot read an expression that an earlier one accepted. */
function findReadable(schedule: Schedule, now: Date, log: (line: string) => void): string | undefined {
  try {
    return findNext(schedule, now)
  } catch (error) {
    log(`${schedule.id} is due no more: ${messageOf(error)}`)
    return undefined
  }
}

/**
 * Deals with a schedule that is due: stores the run that will begin, or the reason why none does, and the next due time. Moments
 * in between are dropped. Call it in a transaction.
 */
export function noteDue(db: Database, schedule: Schedule, now: Date, log: (line: string) => void): void {
  const { id: scheduleId, nextAt: dueAt } = schedule
  if (dueAt === undefined) return
  const isLate = now.getTime() - Date.parse(dueAt) > LATE_MS
  const row = { scheduleId, dueAt, trigger: isLate ? 'missed' : 'due' } as const
  const skip = (error: string) =>
    insertScheduleRun(db, { ...row, sandboxId: schedule.sandboxId ?? '' }, { status: 'skipped', error })
  const dead = whyKeyIsDead(db, schedule)
  if (dead !== undefined) {
    skip(`${dead} The schedule is paused: whoever resumes it takes it over.`)
    pauseForKey(db, scheduleId)
    return
  }
  if (findOpenScheduleRun(db, scheduleId)) skip('The run before it was under way.')
  else insertScheduleRun(db, { ...row, sandboxId: chooseSandboxId(db, schedule) })
  setNext(db, { ...schedule, lastDueAt: dueAt }, now, log)
}

/** Stores when a schedule is due next, by the present clock. */
export function setNext(db: Database, schedule: Schedule, now: Date, log: (line: string) => void): void {
  const { lastDueAt } = schedule
  const nextAt = findReadable(schedule, now, log)
  if (nextAt === schedule.nextAt) return
  setNextDue(db, schedule.id, {
    ...(nextAt !== undefined && { nextAt }),
    ...(lastDueAt !== undefined && { lastDueAt }),
  })
}

/**
 * Chooses where the next run takes place. The id is stored before the sandbox is made, so that a server that dies in between
 * makes no second one.
 */
export function chooseSandboxId(db: Database, { id, teamId, sandbox, sandboxId }: Schedule): string {
  if (sandbox === 'new') return newId('sbx')
  if (sandbox !== 'same') return sandbox
  if (sandboxId !== undefined && findSandbox(db, teamId, sandboxId)) return sandboxId
  const made = newId('sbx')
  setSharedSandbox(db, id, made)
  return made
}

/** The caller whose rights and limits a schedule has. Throws unauthorized when they have ended with its key. */
export function callerOfSchedule(db: Database, { id: scheduleId, teamId, keyId, keep }: Schedule): Caller {
  const key = keyId === undefined ? undefined : findKey(db, keyId)
  if (key && !keep) assertUsable(key, 'The API key of the schedule')
  return { ...(key ? callerOf(key) : { teamId, ...(keyId !== undefined && { keyId }) }), scheduleId }
}

function whyKeyIsDead(db: Database, schedule: Schedule): string | undefined {
  try {
    callerOfSchedule(db, schedule)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}
