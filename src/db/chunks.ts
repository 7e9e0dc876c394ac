import type { Database } from 'bun:sqlite'
import { inTransaction } from './open.ts'

/**
 * One chunk of a run's log; the first has `seq` 1, and no number is left out, except before the end of one whose last chunks a loss of
 * power may have taken.
 */
export interface ChunkRow {
  seq: number
  chunk: string
}

/** Adds chunks to a run's log, all or none. Throws when the run is gone. */
export function insertChunks(db: Database, runId: string, firstSeq: number, chunks: readonly string[]): void {
  const insert = db.query('insert into run_chunks (run_id, seq, chunk) values ($runId, $seq, $chunk)')
  const all = () => {
    for (const [index, chunk] of chunks.entries()) insert.run({ runId, seq: firstSeq + index, chunk })
  }
  if (chunks.length === 1) all()
  else inTransaction(db, all)
}

/** The chunks after `after`, in order: at most 256, and no more once they are `maxLength` characters. */
export function listChunks(db: Database, runId: string, after: number, maxLength: number): ChunkRow[] {
  const rows: ChunkRow[] = []
  let length = 0
  const query = db.query<ChunkRow, { runId: string; after: number }>(
    'select seq, chunk from run_chunks where run_id = $runId and seq > $after order by seq limit 256',
  )
  for (const row of query.iterate({ runId, after })) {
    rows.push(row)
    length += row.chunk.length
    if (length >= maxLength) break
  }
  return rows
}

/** The `seq` of the last chunk of a run's log; 0 when it is empty. */
export const lastChunk = (db: Database, runId: string): number =>
  db
    .query<{ last: number | null }, { runId: string }>('select max(seq) as last from run_chunks where run_id = $runId')
    .get({ runId })?.last ?? 0

/** True when a run's log has this chunk. */
export const hasChunk = (db: Database, runId: string, seq: number): boolean =>
  db.query('select 1 from run_chunks where run_id = $runId and seq = $seq').get({ runId, seq }) !== null

/** The runs ended before `endedBefore` (ISO time) whose logs are still there. Costs no more than there are logs. */
export const listEndedLogs = (db: Database, endedBefore: string): string[] =>
  db
    .query<{ id: string }, { endedBefore: string }>(
      `with recursive logged (id) as (
         select min(run_id) from run_chunks
         union all
         select (select min(run_id) from run_chunks where run_id > logged.id) from logged where logged.id is not null
       )
       select runs.id from logged join runs on runs.id = logged.id where runs.ended_at < $endedBefore`,
    )
    .all({ endedBefore })
    .map(row => row.id)

/** Deletes up to `limit` chunks of a run's log and returns how many. */
export const deleteChunks = (db: Database, runId: string, limit: number): number =>
  db
    .query(
      `delete from run_chunks where run_id = $runId
         and seq in (select seq from run_chunks where run_id = $runId order by seq limit $limit)`,
    )
    .run({ runId, limit }).changes
