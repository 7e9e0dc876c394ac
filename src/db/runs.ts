import type { Database } from 'bun:sqlite'
import type { RunRecord, RunStatus, Usage } from '../model/run.ts'
import { now } from './id.ts'
import { mustLast } from './lasting.ts'

const columns = `id, thread_id as threadId, sandbox_id as sandboxId, status, message_id as messageId, profile, model, input_tokens as inputTokens,
  output_tokens as outputTokens, cost_usd as costUsd, started_at as startedAt, ended_at as endedAt`

/** Stores a run that begins now. Throws when its thread or sandbox is gone. */
export function insertRun(
  db: Database,
  run: Pick<RunRecord, 'id' | 'threadId' | 'sandboxId' | 'messageId' | 'profile'> & {
    background: boolean
    model: string
  },
): void {
  mustLast(db)
  db.query(
    `insert into runs (id, thread_id, sandbox_id, status, background, message_id, profile, model, started_at)
     values ($id, $threadId, $sandboxId, 'active', $background, $messageId, $profile, $model, $now)`,
  ).run({ ...run, background: run.background ? 1 : 0, now: now() })
}

export const findRun = (db: Database, id: string): RunRecord | undefined =>
  db.query<RunRecord, { id: string }>(`select ${columns} from runs where id = $id`).get({ id }) ?? undefined

/** The runs that are not ended, oldest first. */
export const listActiveRuns = (db: Database): RunRecord[] =>
  db.query<RunRecord, []>(`select ${columns} from runs where status = 'active' order by id`).all()

/** The thread's next run after this one, in whatever state. */
export const findLaterRun = (
  db: Database,
  { id, threadId }: { id: string; threadId: string },
): { startedAt: string } | undefined =>
  db
    .query<{ startedAt: string }, { id: string; threadId: string }>(
      'select started_at as startedAt from runs where thread_id = $threadId and id > $id order by id limit 1',
    )
    .get({ id, threadId }) ?? undefined

/** Keeps what a crash would lose: the log has it only at the end. */
export function saveRunUsage(
  db: Database,
  id: string,
  model: string,
  { inputTokens, outputTokens, costUsd }: Usage,
): void {
  db.query(
    `update runs set model = $model, input_tokens = $inputTokens, output_tokens = $outputTokens, cost_usd = $costUsd
     where id = $id`,
  ).run({ id, model, inputTokens, outputTokens, costUsd })
}

/** Ends an active run, now. */
export function endRun(
  db: Database,
  id: string,
  end: { status: Exclude<RunStatus, 'active'>; error: string | null; durationMs: number },
): void {
  mustLast(db)
  db.query(
    'update runs set status = $status, error = $error, duration_ms = $durationMs, ended_at = $now where id = $id',
  ).run({ id, ...end, now: now() })
}
