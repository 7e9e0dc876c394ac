import type { Database } from 'bun:sqlite'
import type { ScheduleRun, ScheduleRunEnd } from '../model/schedule.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'
import { type Columns, present } from './row.ts'

type Row = Columns<ScheduleRun>

const columns = `id, schedule_id as scheduleId, trigger, due_at as dueAt, status, sandbox_id as sandboxId,
  thread_id as threadId, run_id as runId, pid, exit_code as exitCode, error,
  started_at as startedAt, ended_at as endedAt`

const fromRow = (row: Row): ScheduleRun => present<ScheduleRun>(row)

/** How many runs of a schedule are kept. */
const KEPT = 200

/**
 * Stores that a schedule is due before anything of it runs; with `end`, that it will not run. Ended runs beyond the newest 200
 * are deleted. Undefined when this moment was dealt with already.
 */
export function insertScheduleRun(
  db: Database,
  input: Pick<ScheduleRun, 'scheduleId' | 'trigger' | 'dueAt' | 'sandboxId'>,
  end?: ScheduleRunEnd,
): ScheduleRun | undefined {
  mustLast(db)
  const row = db
    .query<Row, Record<string, string | null>>(
      `insert into schedule_runs (id, schedule_id, trigger, due_at, status, sandbox_id, thread_id, error, ended_at)
       values ($id, $scheduleId, $trigger, $dueAt, $status, $sandboxId, $threadId, $error, $endedAt)
       on conflict (schedule_id, due_at) where trigger <> 'request' do nothing returning ${columns}`,
    )
    .get({
      ...input,
      id: newId('scr'),
      threadId: newId('thr'),
      status: end?.status ?? 'due',
      error: end?.error ?? null,
      endedAt: end ? now() : null,
    })
  db.query(
    `delete from schedule_runs where schedule_id = $scheduleId and ended_at is not null and position <=
       (select position from schedule_runs where schedule_id = $scheduleId order by position desc limit 1 offset ${KEPT})`,
  ).run({ scheduleId: input.scheduleId })
  return row ? fromRow(row) : undefined
}

/** The runs that have not ended, oldest first, without those with these ids and those of these teams. */
export const listOpenScheduleRuns = (
  db: Database,
  { except, exceptTeams, limit }: { except: readonly string[]; exceptTeams: readonly string[]; limit: number },
): ScheduleRun[] =>
  db
    .query<Row, { except: string; exceptTeams: string; limit: number }>(
      `select ${columns} from schedule_runs where ended_at is null and id not in (select value from json_each($except))
         and schedule_id in (select id from schedules where team_id not in (select value from json_each($exceptTeams)))
       order by position limit $limit`,
    )
    .all({ except: JSON.stringify(except), exceptTeams: JSON.stringify(exceptTeams), limit })
    .map(fromRow)

/** The run of a schedule that has not ended. */
export function findOpenScheduleRun(db: Database, scheduleId: string): ScheduleRun | undefined {
  const row = db
    .query<Row, { scheduleId: string }>(
      `select ${columns} from schedule_runs where schedule_id = $scheduleId and ended_at is null
       order by position desc limit 1`,
    )
    .get({ scheduleId })
  return row ? fromRow(row) : undefined
}

/** A page of a schedule's history, newest first. */
export const listScheduleRuns = (
  db: Database,
  { scheduleId, limit, before }: { scheduleId: string; limit: number; before?: string },
): ScheduleRun[] =>
  db
    .query<Row, { scheduleId: string; limit: number; before: string | null }>(
      `select ${columns} from schedule_runs where schedule_id = $scheduleId
         and ($before is null or position < (select position from schedule_runs where id = $before))
       order by position desc limit $limit`,
    )
    .all({ scheduleId, limit, before: before ?? null })
    .map(fromRow)

/** Stores that a run has begun, with the id by which its work is found. */
export const beginScheduleRun = (db: Database, id: string, { runId, pid }: { runId?: string; pid?: number }): void =>
  void db
    .query(
      `update schedule_runs set status = 'running', run_id = $runId, pid = $pid, started_at = coalesce(started_at, $at)
       where id = $id and ended_at is null`,
    )
    .run({ id, runId: runId ?? null, pid: pid ?? null, at: now() })

/** Stores the end of a run that has not ended yet. */
export function endScheduleRun(db: Database, id: string, { status, exitCode, error }: ScheduleRunEnd): void {
  mustLast(db)
  db.query(
    `update schedule_runs set status = $status, exit_code = $exitCode, error = $error, ended_at = $at where id = $id and ended_at is null`,
  ).run({
    id,
    status,
    exitCode: exitCode ?? null,
    error: error ?? null,
    at: now(),
  })
}

/** The only run of a thread that was made for it. */
export const findRunOfThread = (
  db: Database,
  threadId: string,
): { id: string; status: string; error: string | null } | undefined =>
  db
    .query<{ id: string; status: string; error: string | null }, { threadId: string }>(
      'select id, status, error from runs where thread_id = $threadId order by id limit 1',
    )
    .get({ threadId }) ?? undefined
