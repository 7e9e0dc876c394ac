import type { Database } from 'bun:sqlite'
import type { Thread, ThreadInput, ThreadPage, ThreadUsage } from '../model/thread.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'
import { type Columns, present } from './row.ts'
import { roundUsd } from './usd.ts'

type Row = Columns<Thread>

const columns = `id, sandbox_id as sandboxId, name, status, error, external_user_id as externalUserId,
  engine_session_id as engineSessionId, created_at as createdAt, updated_at as updatedAt, completed_at as completedAt`

const toThread = ({ externalUserId, engineSessionId, ...row }: Row): Thread => ({
  ...row,
  ...present<Pick<Thread, 'externalUserId' | 'engineSessionId'>>({ externalUserId, engineSessionId }),
})

/** Throws when the sandbox is gone. */
export function insertThread(db: Database, input: ThreadInput): Thread {
  mustLast(db)
  const at = now()
  const row: Row = {
    id: input.id ?? newId('thr'),
    sandboxId: input.sandboxId,
    name: input.name ?? null,
    status: 'active',
    error: null,
    externalUserId: input.externalUserId ?? null,
    engineSessionId: null,
    createdAt: at,
    updatedAt: at,
    completedAt: null,
  }
  db.query(
    `insert into threads (id, sandbox_id, name, status, external_user_id, created_at, updated_at)
     values ($id, $sandboxId, $name, $status, $externalUserId, $createdAt, $updatedAt)`,
  ).run({ ...row })
  return toThread(row)
}

export function findThread(db: Database, sandboxId: string, id: string): Thread | undefined {
  const row = db
    .query<Row, { sandboxId: string; id: string }>(
      `select ${columns} from threads where sandbox_id = $sandboxId and id = $id`,
    )
    .get({ sandboxId, id })
  return row ? toThread(row) : undefined
}

/** Finds the id of the sandbox of a team's thread. */
export const findSandboxOfThread = (db: Database, teamId: string, id: string): string | undefined =>
  db
    .query<{ sandboxId: string }, { teamId: string; id: string }>(
      `select sandboxes.id as sandboxId from threads join sandboxes on sandboxes.id = threads.sandbox_id
       where threads.id = $id and team_id = $teamId`,
    )
    .get({ teamId, id })?.sandboxId

/** Finds whose a thread is. */
export const findOwner = (db: Database, id: string): { teamId: string; sandboxId: string } | undefined =>
  db
    .query<{ teamId: string; sandboxId: string }, { id: string }>(
      `select team_id as teamId, sandboxes.id as sandboxId from threads
       join sandboxes on sandboxes.id = threads.sandbox_id where threads.id = $id`,
    )
    .get({ id }) ?? undefined

type PageQuery = { sandboxId: string; limit: number; before: string | null; userId: string | null }

/** A sandbox's threads, newest first. */
export const listThreads = (db: Database, sandboxId: string, { limit, before, userId }: ThreadPage = {}): Thread[] =>
  db
    .query<Row, PageQuery>(
      `select ${columns} from threads where sandbox_id = $sandboxId and ($before is null or id < $before)
         and ($userId is null or external_user_id = $userId) order by id desc limit $limit`,
    )
    .all({ sandboxId, limit: limit ?? -1, before: before ?? null, userId: userId ?? null })
    .map(toThread)

/** With its messages and runs. False when there is no such thread. */
export function deleteThread(db: Database, id: string): boolean {
  mustLast(db)
  return db.query('delete from threads where id = $id').run({ id }).changes > 0
}

export function renameThread(db: Database, id: string, name: string): void {
  mustLast(db)
  db.query('update threads set name = $name, updated_at = $now where id = $id').run({ id, name, now: now() })
}

/** Names a thread that has no name. */
export function nameIfUnnamed(db: Database, id: string, name: string): void {
  db.query('update threads set name = $name where id = $id and name is null').run({ id, name })
}

/** Keeps the engine's own name for this conversation, for its next turn. */
export function setEngineSession(db: Database, id: string, engineSessionId: string): void {
  db.query('update threads set engine_session_id = $engineSessionId where id = $id').run({ id, engineSessionId })
}

/** The engine's own name for this conversation counts no more. */
export function clearEngineSession(db: Database, id: string): void {
  db.query('update threads set engine_session_id = null where id = $id').run({ id })
}

/** Notes that the thread was changed, now. */
export function touchThread(db: Database, id: string): void {
  db.query('update threads set updated_at = $now where id = $id').run({ id, now: now() })
}

/** Notes that a run of the thread begins. */
export function startThread(db: Database, id: string): void {
  db.query(
    `update threads set status = 'streaming', error = null, completed_at = null, updated_at = $now where id = $id`,
  ).run({ id, now: now() })
}

/** Notes that a run of the thread has ended, or waits. */
export function endThread(
  db: Database,
  id: string,
  end: { status: 'waiting' | 'completed' | 'error' | 'cancelled'; error: string | null },
): void {
  db.query(
    `update threads set status = $status, error = $error, completed_at = iif($status = 'waiting', null, $now), updated_at = $now
     where id = $id`,
  ).run({ id, ...end, now: now() })
}

export function threadUsage(db: Database, id: string): ThreadUsage {
  const usage = db
    .query<ThreadUsage, { id: string }>(
      `select sum(input_tokens) as inputTokens, sum(output_tokens) as outputTokens,
         sum(input_tokens + output_tokens) as totalTokens, sum(cost_usd) as totalCostUsd,
         sum(duration_ms) as durationMs
       from runs where thread_id = $id and ended_at is not null`,
    )
    .get({ id }) ?? { inputTokens: null, outputTokens: null, totalTokens: null, totalCostUsd: null, durationMs: null }
  const { totalCostUsd } = usage
  return { ...usage, totalCostUsd: totalCostUsd === null ? null : roundUsd(totalCostUsd) }
}

/** The threads of a sandbox that wait for a person or a client. */
export const listWaitingThreads = (db: Database, sandboxId: string): string[] =>
  db
    .query<{ id: string }, { sandboxId: string }>(
      `select id from threads where sandbox_id = $sandboxId and status = 'waiting'`,
    )
    .all({ sandboxId })
    .map(({ id }) => id)
