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

/** A chunk with the moment at which it was made, in milliseconds since 1970; null in logs of earlier versions. */
export interface TimedChunk extends ChunkRow {
  atMs: number | null
}

/** Adds new chunks to a run's log, all or none. Throws when the run is gone. */
export function insertChunks(db: Database, runId: string, firstSeq: number, chunks: readonly string[]): void {
  const insert = db.query('insert into run_chunks (run_id, seq, at_ms, chunk) values ($runId, $seq, $atMs, $chunk)')
  const atMs = Date.now()
  const all = () => {
    for (const [index, chunk] of chunks.entries()) insert.run({ runId, seq: firstSeq + index, atMs, chunk })
  }
  if (chunks.length === 1) all()
  else inTransaction(db, all)
}

/** The chunks after `after`, in order: at most 256, and no more once they are `maxLength` characters. */
export function listChunks(db: Database, runId: string, after: number, maxLength: number): TimedChunk[] {
  const rows: TimedChunk[] = []
  let length = 0
  const query = db.query<TimedChunk, { runId: string; after: number }>(
    'select seq, at_ms as atMs, chunk from run_chunks where run_id = $runId and seq > $after order by seq limit 256',
  )
  for (const row of query.iterate({ runId, after })) {
    rows.push(row)
    length += row.chunk.length
    if (length >= maxLength) break
  }
  return rows
}

/**
 * Matches a delta of a few words, which nearly all chunks of a long log are. No stream profile changes one, so `changing` in
 * stream/project.ts must never match one.
 */
const isPlain = `octet_length(chunk) <= 512 and (chunk >= '{"type":"text-' and chunk < '{"type":"text.'
  or chunk >= '{"type":"reasoning-' and chunk < '{"type":"reasoning.'
  or chunk >= '{"type":"tool-input-' and chunk < '{"type":"tool-input.')`

/** Consecutive chunks of a log, in order. */
export interface PlainChunks {
  /** The plain chunks, each within the texts that were asked for, with a zero byte in place of each other chunk. */
  bytes: Uint8Array
  /** The `seq` of the last chunk. */
  last: number
}

/**
 * Reads the chunks from `after` up to `until` as bytes that SQLite puts together, since as many rows would take longer. Undefined
 * when the next number is missing. Each plain chunk is preceded by `before`, its number and `between`, and followed by `end`.
 */
export function readPlainChunks(
  db: Database,
  runId: string,
  { after, until }: { after: number; until: number },
  texts: { before: string; between: string; end: string },
): PlainChunks | undefined {
  // Rows come in the order of the primary key.
  const page = db
    .query<{ first: number | null } & PlainChunks, { runId: string; after: number; until: number } & typeof texts>(
      `select min(seq) as first, max(seq) as last,
         cast(group_concat(iif(${isPlain}, $before || seq || $between || chunk || $end, char(0)), '') as blob) as bytes
       from run_chunks where run_id = $runId and seq > $after and seq <= $until`,
    )
    .get({ runId, after, until, ...texts })
  return page?.first === after + 1 ? page : undefined
}

/** The chunks after `after` and up to `until` that are not plain, in order. */
export const listOtherChunks = (db: Database, runId: string, after: number, until: number): Iterable<ChunkRow> =>
  db
    .query<ChunkRow, { runId: string; after: number; until: number }>(
      `select seq, chunk from run_chunks
       where run_id = $runId and seq > $after and seq <= $until and not (${isPlain}) order by seq`,
    )
    .iterate({ runId, after, until })

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
