import type { Database } from 'bun:sqlite'
import { hasChunk, lastChunk, listChunks } from '../db/chunks.ts'
import { frame } from '../stream/frame.ts'

/** What a reader follows: frames that are stored, and word of more. */
export interface ChunkSource {
  /** What comes after the chunk `after`, bounded; undefined when nothing does yet. Throws when it is lost. */
  read(after: number): { bytes: Uint8Array; last: number } | undefined
  /** No more will come. */
  readonly ended: boolean
  /** Calls `wake` once, when there may be more or the end. Returns how to take that back. */
  wait(wake: () => void): () => void
  /** Counts a reader in. Returns how to count it out. */
  attach(): () => void
}

/** A run's chunk log, as its readers see it. */
export interface Log extends ChunkSource {
  readonly count: number
  readonly readerCount: number
  /** Shows chunks that are committed, and lets waiting readers know. */
  show(chunks: readonly string[]): void
  /** Readers that have all so far fail, until more is shown. */
  fail(): void
  /** No more will come. `lost`: the closing chunks could not be stored, and readers fail instead of ending well. */
  end(lost?: boolean): void
}

/**
 * How far the numbers of chunks jump where a loss of power may have taken some that readers have: no id may come to mean
 * another chunk.
 */
export const LOST_SEQS = 1_000_000

const tailFrames = 256
const pageBytes = 256 * 1024

/** A log of which nothing is shown yet. Readers at its end are served from a bounded tail in memory, others from the database. */
export function createLog(db: Database, runId: string): Log {
  const tail: Uint8Array[] = []
  const waiting = new Set<() => void>()
  let tailBytes = 0
  let count = 0
  let readerCount = 0
  let state: 'open' | 'failing' | 'ended' | 'lost' = 'open'

  function wakeAll(): void {
    const woken = [...waiting]
    waiting.clear()
    for (const wake of woken) wake()
  }

  return {
    get count() {
      return count
    },
    get readerCount() {
      return readerCount
    },
    get ended() {
      return state === 'ended' || state === 'lost'
    },
    read(after) {
      if (after < count - tail.length) return storedPage(db, runId, after)
      if (after < count) return { bytes: joined(tail.slice(after - count)), last: count }
      if (state === 'lost' || state === 'failing') throw new Error('The end of this run could not be stored.')
      return undefined
    },
    wait(wake) {
      waiting.add(wake)
      return () => waiting.delete(wake)
    },
    attach() {
      readerCount += 1
      return () => {
        readerCount -= 1
      }
    },
    show(chunks) {
      for (const chunk of chunks) {
        count += 1
        const bytes = frame(runId, count, chunk)
        tail.push(bytes)
        tailBytes += bytes.length
      }
      while (tail.length > tailFrames || (tailBytes > pageBytes && tail.length > 1))
        tailBytes -= tail.shift()?.length ?? 0
      wakeAll()
    },
    fail() {
      state = 'failing'
      wakeAll()
    },
    end(lost = false) {
      state = lost ? 'lost' : 'ended'
      wakeAll()
    },
  }
}

/** True when a reader that has the chunk `after` has more than what is stored. */
export const isBeyond = (db: Database, runId: string, after: number): boolean =>
  after > 0 && !hasChunk(db, runId, after)

/** The log of a run that has ended. */
export function openStoredLog(db: Database, runId: string): ChunkSource {
  const count = lastChunk(db, runId)
  return {
    ended: true,
    read: after => (after < count ? storedPage(db, runId, after) : undefined),
    wait: () => () => {},
    attach: () => () => {},
  }
}

function storedPage(db: Database, runId: string, after: number) {
  const rows = listChunks(db, runId, after, pageBytes)
  const first = rows[0]?.seq
  const last = rows.at(-1)?.seq
  // Purged while a reader slept, or deleted with its thread: a gap must never look like a whole stream.
  const isGap = first !== after + 1 && !(first === after + 1 + LOST_SEQS && hasChunk(db, runId, after))
  if (last === undefined || isGap) throw new Error('The log of this run is gone.')
  return { bytes: joined(rows.map(row => frame(runId, row.seq, row.chunk))), last }
}

const joined = (frames: readonly Uint8Array[]): Uint8Array => {
  const [first] = frames
  return first && frames.length === 1 ? first : Buffer.concat(frames)
}
