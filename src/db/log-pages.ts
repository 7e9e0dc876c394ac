import type { Database } from 'bun:sqlite'
import { now } from './id.ts'
import { inTransaction } from './open.ts'

/** Compressed chunks of an older run's log. */
export interface LogPage {
  lastSeq: number
  chunks: Uint8Array
}

/** Replaces a log's chunks up to the page's last by the page. When the run is gone, nothing changes. */
export const replaceChunks = (db: Database, runId: string, { lastSeq, chunks }: LogPage): void =>
  inTransaction(db, () => {
    db.query(
      `insert into log_pages (run_id, last_seq, chunks, ends_at_byte, kept_at)
       select id, $lastSeq, $chunks, length($chunks) + coalesce((select ends_at_byte from log_pages order by id desc limit 1), 0), $now
       from runs where id = $runId`,
    ).run({ runId, lastSeq, chunks, now: now() })
    db.query('delete from run_chunks where run_id = $runId and seq <= $lastSeq').run({ runId, lastSeq })
  })

/** The page with the chunk that comes after `after`; undefined when no page has it. */
export const findLogPage = (db: Database, runId: string, after: number): LogPage | undefined =>
  db
    .query<LogPage, { runId: string; after: number }>(
      `select last_seq as lastSeq, chunks from log_pages where run_id = $runId and last_seq > $after
       order by last_seq limit 1`,
    )
    .get({ runId, after }) ?? undefined

/**
 * Deletes at most `limit` of the oldest pages: those stored before a moment, and those beyond the newest `mostBytes`. Returns how
 * many.
 */
export const deleteLogPages = (
  db: Database,
  { before, mostBytes, limit }: { before: string; mostBytes: number; limit: number },
): number =>
  db
    .query(
      `delete from log_pages where id in (select id from log_pages order by id limit $limit)
         and (kept_at < $before
           or ends_at_byte - length(chunks) < (select ends_at_byte from log_pages order by id desc limit 1) - $mostBytes)`,
    )
    .run({ before, mostBytes, limit }).changes
