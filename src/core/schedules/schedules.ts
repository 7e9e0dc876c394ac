import { inTransaction } from '../../db/open.ts'
import { findOpenScheduleRun, insertScheduleRun, listScheduleRuns } from '../../db/schedule-runs.ts'
import {
  countSchedules,
  deleteSchedule,
  findSchedule,
  insertSchedule,
  listSchedules,
  type ScheduleInput,
  updateSchedule,
} from '../../db/schedules.ts'
import { ApiError } from '../../errors.ts'
import type { Schedule, ScheduleRun } from '../../model/schedule.ts'
import { assertKey, type Caller } from '../access/caller.ts'
import { assertScope } from '../access/scopes.ts'
import { getAgent } from '../agents/agents.ts'
import { getEngine } from '../chat/start-turn.ts'
import type { Runtime } from '../runtime.ts'
import { assertStartable } from '../sandboxes/program.ts'
import { getSandbox } from '../sandboxes/sandboxes.ts'
import { assertTimes } from './cron.ts'
import { chooseSandboxId, findNext } from './due.ts'

const MAX_SCHEDULES = 2000
const DEFAULT_TIMEOUT_MS = 3_600_000

/** The settings of a schedule that a request asks for. */
export interface ScheduleWish {
  name?: string
  cron: string
  timeZone?: string
  agent: string
  prompt?: string
  command?: string
  sandbox?: string
  timeoutMs?: number
  keep?: boolean
  paused?: boolean
}

interface Page {
  limit: number
  before?: string
}

/**
 * Makes a schedule of the caller's team. It has the rights of the caller's key. Throws invalid_request, agent_not_found,
 * sandbox_not_found, forbidden, and conflict when there are too many.
 */
export function createSchedule(runtime: Runtime, caller: Caller, wish: ScheduleWish): Schedule {
  const { db, schedules } = runtime
  const input = toInput(runtime, caller, wish)
  const schedule = inTransaction(db, () => {
    if (countSchedules(db, caller.teamId) >= MAX_SCHEDULES) {
      throw new ApiError('conflict', `A team has at most ${MAX_SCHEDULES} schedules.`)
    }
    return insertSchedule(db, input)
  })
  schedules.wake()
  return schedule
}

/** Throws forbidden for a token. */
export function listOwnSchedules({ db }: Runtime, caller: Caller, page: Page): Schedule[] {
  assertKey(caller, 'see schedules')
  return listSchedules(db, caller.teamId, page)
}

/** Throws forbidden for a token, and not_found. */
export function getSchedule({ db }: Runtime, caller: Caller, id: string): Schedule {
  assertKey(caller, 'see schedules')
  const schedule = findSchedule(db, id)
  if (schedule?.teamId !== caller.teamId) throw new ApiError('not_found', 'There is no such schedule.')
  return schedule
}

/**
 * Changes a schedule. A caller who does more than pause it takes it over: the schedule then has the rights of that caller's key.
 * Throws as `createSchedule` and `getSchedule` do.
 */
export function changeSchedule(
  runtime: Runtime,
  caller: Caller,
  id: string,
  { paused, ...change }: Partial<ScheduleWish>,
): Schedule {
  const { db, schedules } = runtime
  const now = getSchedule(runtime, caller, id)
  if (paused === true && Object.keys(change).length === 0) {
    assertScope(caller, [scopeOf(now)])
    const { nextAt: _, pausedBy: __, ...rest } = now
    updateSchedule(db, id, { ...rest, pausedAt: now.pausedAt ?? new Date().toISOString() })
  } else {
    // A key that may not use the schedule as it is may not change it into something else.
    assertScope(caller, [scopeOf(now)])
    const wish = { ...toWish(now), ...change, ...(paused !== undefined && { paused }) }
    if (change.prompt !== undefined && change.command === undefined) delete wish.command
    if (change.command !== undefined && change.prompt === undefined) delete wish.prompt
    const input = toInput(runtime, caller, wish)
    const isDueAsBefore = input.cron === now.cron && input.timeZone === now.timeZone && !input.pausedAt && now.nextAt
    updateSchedule(db, id, {
      ...input,
      // The schedule may be due at this moment.
      ...(isDueAsBefore && { nextAt: now.nextAt }),
      ...(input.pausedAt && now.pausedAt && { pausedAt: now.pausedAt }),
    })
  }
  schedules.wake()
  return getSchedule(runtime, caller, id)
}

/** Removes a schedule with its history. Runs that have begun go on. Throws as `getSchedule` does. */
export function removeSchedule(runtime: Runtime, caller: Caller, id: string): void {
  assertScope(caller, [scopeOf(getSchedule(runtime, caller, id))])
  deleteSchedule(runtime.db, id)
}

/** Runs a schedule now, even a paused one. Throws as `getSchedule` does, and conflict while one of its runs goes on. */
export function runScheduleNow(runtime: Runtime, caller: Caller, id: string): ScheduleRun {
  const { db, schedules } = runtime
  const schedule = getSchedule(runtime, caller, id)
  assertScope(caller, [scopeOf(schedule)])
  const run = inTransaction(db, () => {
    if (findOpenScheduleRun(db, id)) throw new ApiError('conflict', 'A run of this schedule is under way.')
    const sandboxId = chooseSandboxId(db, schedule)
    return insertScheduleRun(db, {
      scheduleId: id,
      trigger: 'request',
      dueAt: schedules.now().toISOString(),
      sandboxId,
    })
  })
  if (!run) throw new Error('a run by request is never there already')
  schedules.wake()
  return run
}

/** A page of a schedule's runs, newest first. Throws as `getSchedule` does. */
export function listOwnScheduleRuns(runtime: Runtime, caller: Caller, id: string, page: Page): ScheduleRun[] {
  getSchedule(runtime, caller, id)
  return listScheduleRuns(runtime.db, { scheduleId: id, ...page })
}

/** The scope that a schedule needs: that of a request which does the same. */
const scopeOf = ({ command }: { command?: string }) => (command === undefined ? 'chat' : 'sandboxes')

function toInput(runtime: Runtime, caller: Caller, wish: ScheduleWish): ScheduleInput {
  assertKey(caller, 'make schedules')
  const { cron, timeZone = 'UTC', agent: agentSlug, prompt, command, sandbox = 'new', keep = false } = wish
  if ((prompt === undefined) === (command === undefined)) {
    throw new ApiError('invalid_request', 'prompt: send either a prompt or a command', { field: 'prompt' })
  }
  assertScope(caller, [scopeOf(wish)])
  // Only an unrestricted key may let a schedule keep the key's rights after the key has ended.
  if (keep) assertScope(caller, ['admin'])
  assertTimes({ cron, timeZone })
  const agent = getAgent(runtime, caller, agentSlug)
  if (prompt !== undefined) getEngine(runtime, agent)
  if (command !== undefined) assertStartable({ command })
  if (sandbox !== 'new' && sandbox !== 'same') getSandbox(runtime, caller, sandbox)
  const { schedules } = runtime
  const nextAt = wish.paused ? undefined : findNext({ cron, timeZone }, schedules.now())
  return {
    teamId: caller.teamId,
    name: wish.name ?? agentSlug,
    ...{ cron, timeZone, agentSlug, sandbox, keep, timeoutMs: wish.timeoutMs ?? DEFAULT_TIMEOUT_MS },
    ...(caller.keyId !== undefined && { keyId: caller.keyId }),
    ...(prompt !== undefined && { prompt }),
    ...(command !== undefined && { command }),
    ...(nextAt !== undefined && { nextAt }),
    ...(wish.paused && { pausedAt: schedules.now().toISOString() }),
  }
}

const toWish = ({ agentSlug, pausedAt, ...schedule }: Schedule): ScheduleWish => ({
  ...schedule,
  agent: agentSlug,
  paused: pausedAt !== undefined,
})
