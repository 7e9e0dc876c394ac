import type { Database } from 'bun:sqlite'
import type { Schedule } from '../model/schedule.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'
import { type Columns, present } from './row.ts'

type Row = Omit<Columns<Schedule>, 'keep'> & { keep: number }

const columns = `id, team_id as teamId, key_id as keyId, name, cron, time_zone as timeZone, agent_slug as agentSlug, prompt,
  command, sandbox, sandbox_id as sandboxId, timeout_ms as timeoutMs, keep, paused_at as pausedAt, paused_by as pausedBy,
  next_at as nextAt, last_due_at as lastDueAt, created_at as createdAt, updated_at as updatedAt`

const fromRow = ({ keep, ...row }: Row): Schedule => ({
  ...present<Omit<Schedule, 'keep'>>(row),
  keep: keep !== 0,
})

/** The fields of a schedule that a request sets. */
export type ScheduleInput = Omit<Schedule, 'id' | 'sandboxId' | 'lastDueAt' | 'createdAt' | 'updatedAt'>

const toRow = (input: ScheduleInput) => ({
  keyId: null,
  prompt: null,
  command: null,
  pausedAt: null,
  pausedBy: null,
  nextAt: null,
  ...input,
  keep: input.keep ? 1 : 0,
})

/** Stores a schedule. */
export function insertSchedule(db: Database, input: ScheduleInput): Schedule {
  mustLast(db)
  const at = now()
  const id = newId('sch')
  db.query(
    `insert into schedules (id, team_id, key_id, name, cron, time_zone, agent_slug, prompt, command, sandbox, timeout_ms,
       keep, paused_at, paused_by, next_at, created_at, updated_at)
     values ($id, $teamId, $keyId, $name, $cron, $timeZone, $agentSlug, $prompt, $command, $sandbox, $timeoutMs,
       $keep, $pausedAt, $pausedBy, $nextAt, $at, $at)`,
  ).run({ ...toRow(input), id, at })
  return { ...input, id, createdAt: at, updatedAt: at }
}

/** Changes all fields that a request sets. */
export function updateSchedule(db: Database, id: string, input: ScheduleInput): void {
  mustLast(db)
  db.query(
    `update schedules set key_id = $keyId, name = $name, cron = $cron, time_zone = $timeZone, agent_slug = $agentSlug,
       prompt = $prompt, command = $command, sandbox = $sandbox, timeout_ms = $timeoutMs, keep = $keep,
       paused_at = $pausedAt, paused_by = $pausedBy, next_at = $nextAt, updated_at = $at
     where id = $id and team_id = $teamId`,
  ).run({ ...toRow(input), id, at: now() })
}

/** A schedule of any team: the caller checks the team. */
export function findSchedule(db: Database, id: string): Schedule | undefined {
  const row = db.query<Row, { id: string }>(`select ${columns} from schedules where id = $id`).get({ id })
  return row ? fromRow(row) : undefined
}

/** A page of a team's schedules, newest first. */
export const listSchedules = (
  db: Database,
  teamId: string,
  { limit, before }: { limit: number; before?: string },
): Schedule[] =>
  db
    .query<Row, { teamId: string; limit: number; before: string | null }>(
      `select ${columns} from schedules where team_id = $teamId and ($before is null or id < $before)
       order by id desc limit $limit`,
    )
    .all({ teamId, limit, before: before ?? null })
    .map(fromRow)

export const countSchedules = (db: Database, teamId: string): number =>
  db
    .query<{ count: number }, { teamId: string }>('select count(*) as count from schedules where team_id = $teamId')
    .get({ teamId })?.count ?? 0

/** Deletes a schedule with its history. */
export function deleteSchedule(db: Database, id: string): void {
  mustLast(db)
  db.query('delete from schedules where id = $id').run({ id })
}

/** The due schedules, those that are due longest coming first. */
export const listDueSchedules = (db: Database, at: string, limit: number): Schedule[] =>
  db
    .query<Row, { at: string; limit: number }>(
      `select ${columns} from schedules where next_at <= $at order by next_at limit $limit`,
    )
    .all({ at, limit })
    .map(fromRow)

/** All schedules that are neither paused nor due yet. */
export const listLaterSchedules = (db: Database, at: string): Schedule[] =>
  db.query<Row, { at: string }>(`select ${columns} from schedules where next_at > $at`).all({ at }).map(fromRow)

/** When the next schedule is due. Undefined when there is none, or all are paused. */
export const findNextDue = (db: Database): string | undefined =>
  db
    .query<{ at: string }, []>('select next_at as at from schedules where next_at is not null order by next_at limit 1')
    .get()?.at

/** Stores when a schedule is due next, and which moment was dealt with last. */
export const setNextDue = (db: Database, id: string, next: Pick<Schedule, 'nextAt' | 'lastDueAt'>): void =>
  void db
    .query('update schedules set next_at = $nextAt, last_due_at = $lastDueAt where id = $id')
    .run({ id, nextAt: next.nextAt ?? null, lastDueAt: next.lastDueAt ?? null })

/** Pauses a schedule whose key is no longer valid. */
export const pauseForKey = (db: Database, id: string): void =>
  void db
    .query(`update schedules set paused_at = $at, paused_by = 'key', next_at = null where id = $id`)
    .run({ id, at: now() })

/** Stores the sandbox that the runs of a schedule share. */
export const setSharedSandbox = (db: Database, id: string, sandboxId: string): void =>
  void db.query('update schedules set sandbox_id = $sandboxId where id = $id').run({ id, sandboxId })
