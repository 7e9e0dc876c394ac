import type { Database } from 'bun:sqlite'
import { writeWhenFree } from '../db/busy.ts'
import { listChunks, listEndedLogs, type TimedChunk } from '../db/chunks.ts'
import { deleteLogPages, findLogPage, replaceChunks } from '../db/log-pages.ts'

/** A run's log can be read for this long. */
const KEPT_MS = 7 * 86_400_000
/** All stored logs together may have this size, compressed. */
const KEPT_BYTES = 512 * 1024 * 1024
const PAGE_CHARACTERS = 256 * 1024
const PURGE_BATCH = 500

/** Compresses the logs of runs that ended before a moment. They then take a tenth of the space, and can be read but no longer resumed. */
export async function putAwayLogs(db: Database, endedBefore: Date): Promise<void> {
  for (const runId of listEndedLogs(db, endedBefore.toISOString())) {
    for (;;) {
      const rows = listChunks(db, runId, 0, PAGE_CHARACTERS)
      const lastSeq = rows.at(-1)?.seq
      if (lastSeq === undefined) break
      const chunks = await Bun.zstdCompress(pack(rows))
      await writeWhenFree(db, () => replaceChunks(db, runId, { lastSeq, chunks }))
      await new Promise(setImmediate)
    }
  }
}

/** Deletes the logs that were compressed a week ago, and the oldest ones while all together have more than 512 MB. */
export async function deleteOldLogs(db: Database, at: Date): Promise<void> {
  const before = new Date(at.getTime() - KEPT_MS).toISOString()
  const old = { before, mostBytes: KEPT_BYTES, limit: PURGE_BATCH }
  while ((await writeWhenFree(db, () => deleteLogPages(db, old))) === PURGE_BATCH) await new Promise(setImmediate)
}

/**
 * Reads the chunks after `after`, in order, of a run in any state: at most `limit`, and no more once they have `maxLength` characters.
 * The list is empty when the run has no chunks yet, or when its log was deleted.
 */
export async function readLog(
  db: Database,
  runId: string,
  { after, limit, maxLength }: { after: number; limit: number; maxLength: number },
): Promise<TimedChunk[]> {
  const rows: TimedChunk[] = []
  let at = after
  let length = 0
  for (;;) {
    const page = findLogPage(db, runId, at)
    const found = page ? await unpack(page.chunks) : listChunks(db, runId, at, maxLength)
    for (const row of found) {
      if (row.seq <= at) continue
      rows.push(row)
      at = row.seq
      length += row.chunk.length
      if (rows.length === limit || length >= maxLength) return rows
    }
    if (!page && found.length === 0) return rows
  }
}

const pack = (rows: readonly TimedChunk[]): string =>
  JSON.stringify(rows.map(({ seq, atMs, chunk }) => [seq, atMs, chunk]))

async function unpack(bytes: Uint8Array): Promise<TimedChunk[]> {
  const rows = JSON.parse((await Bun.zstdDecompress(bytes)).toString()) as [number, number | null, string][]
  return rows.map(([seq, atMs, chunk]) => ({ seq, atMs, chunk }))
}
