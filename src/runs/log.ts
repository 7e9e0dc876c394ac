import type { Database } from 'bun:sqlite'
import { hasChunk, lastChunk, listChunks } from '../db/chunks.ts'
import { frame } from '../stream/frame.ts'
import { projectJson, type StreamProfile } from '../stream/project.ts'

/** What a reader follows: stored frames, and a signal when there are more. */
export interface ChunkSource {
  /** Reads a bounded page after the chunk `after`; undefined when there is nothing yet. Throws when it is lost. */
  read(after: number): { bytes: Uint8Array; last: number } | undefined
  /** True when no more will come. */
  readonly ended: boolean
  /** Calls `wake` once, at the next chunk or at the end. Returns a function that cancels this. */
  wait(wake: () => void): () => void
  /** Counts a reader. Returns a function that ends this. */
  attach(): () => void
}

/** A run's chunk log in the form that readers see. */
export interface Log extends ChunkSource {
  readonly count: number
  readonly readerCount: number
  /** Shows committed chunks, and wakes the readers that wait. */
  show(chunks: readonly string[]): void
  /** Makes readers that have everything so far fail, until more is shown. */
  fail(): void
  /** Ends the log. `lost`: the closing chunks could not be stored, so readers fail instead of ending. */
  end(lost?: boolean): void
}

/**
 * How far the chunk numbers jump after a loss of power, which may have taken chunks that readers have: an id must never
 * stand for another chunk.
 */
export const LOST_SEQS = 1_000_000

const tailFrames = 256
const pageBytes = 256 * 1024

/** Makes an empty log. Readers at its end are served from a bounded tail in memory, others from the database. */
export function createLog(db: Database, runId: string, profile: StreamProfile): Log {
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
      if (after < count - tail.length) return storedPage(db, { runId, profile }, after)
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
        const bytes = toFrame({ runId, profile }, count, chunk)
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

/** True when a reader has a chunk `after` that is not stored. */
export const isBeyond = (db: Database, runId: string, after: number): boolean =>
  after > 0 && !hasChunk(db, runId, after)

/** The log of a run that has ended. */
export function openStoredLog(
  db: Database,
  { runId, profile }: { runId: string; profile: StreamProfile },
): ChunkSource {
  const count = lastChunk(db, runId)
  return {
    ended: true,
    read: after => (after < count ? storedPage(db, { runId, profile }, after) : undefined),
    wait: () => () => {},
    attach: () => () => {},
  }
}

/** Empty for a chunk that the profile does not have: its number is skipped. */
function toFrame({ runId, profile }: { runId: string; profile: StreamProfile }, seq: number, json: string): Uint8Array {
  const projected = projectJson(json, profile)
  return projected === undefined ? new Uint8Array() : frame(runId, seq, projected)
}

function storedPage(db: Database, source: { runId: string; profile: StreamProfile }, after: number) {
  const { runId } = source
  const rows = listChunks(db, runId, after, pageBytes)
  const first = rows[0]?.seq
  const last = rows.at(-1)?.seq
  // It was purged while a reader waited, or deleted with its thread. A gap must never look like a complete stream.
  const isGap = first !== after + 1 && !(first === after + 1 + LOST_SEQS && hasChunk(db, runId, after))
  if (last === undefined || isGap) throw new Error('The log of this run is gone.')
  return { bytes: joined(rows.map(row => toFrame(source, row.seq, row.chunk))), last }
}

const joined = (frames: readonly Uint8Array[]): Uint8Array => {
  const [first] = frames
  return first && frames.length === 1 ? first : Buffer.concat(frames)
}
