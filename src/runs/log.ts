import type { Database } from 'bun:sqlite'
import type { Turns } from '../async/turns.ts'
import { hasChunk, lastChunk, listChunks, listOtherChunks, type PlainChunks, readPlainChunks } from '../db/chunks.ts'
import { isFull, sync } from '../db/lasting.ts'
import { frame, frameTexts } from '../stream/frame.ts'
import { projectJson, type StreamProfile } from '../stream/project.ts'
import type { Page, PageCache } from './page-cache.ts'

/** What a reader follows: stored frames, and a signal when there are more. */
export interface ChunkSource {
  /** Reads a bounded page after the chunk `after`; undefined when there is nothing yet. Throws when it is lost. */
  read(after: number): Page | undefined
  /** True when no more will come. */
  readonly ended: boolean
  /** Calls `wake` once, when there are more chunks or the log ends. `wake` must not throw. */
  wait(wake: () => void): void
  /** Withdraws `wake`, so that it is not called. */
  forget(wake: () => void): void
  /** Counts a reader. Returns a function that ends this. */
  attach(): () => void
}

/** The run that a log belongs to, and the form in which its readers get chunks. */
export interface LogSource {
  runId: string
  profile: StreamProfile
}

/** The parts that all logs share. */
export interface LogHost {
  db: Database
  pages: PageCache
}

/** A run's chunk log in the form that readers see. */
export interface Log extends ChunkSource {
  /** The number of chunks that readers may see. */
  readonly count: number
  /** The number of committed chunks. With full durability a few of them may not be on the disk yet, and are not shown. */
  readonly stored: number
  readonly readerCount: number
  /** Shows committed chunks, and wakes the readers that wait. With full durability it does so as soon as they are on the disk. */
  show(chunks: readonly string[]): void
  /** Shows everything that is committed, because it is on the disk. */
  showStored(): void
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
/** After a failed sync of the disk, the next try comes after this time. */
const RETRY_MS = 1000
const PAGE_CHUNKS = 512

/** In one turn of the event loop, this many readers are given a chunk. */
const WOKEN_AT_ONCE = 16

/**
 * Makes an empty log. Readers at its end are served from a bounded tail in memory, others from the database. Readers that
 * wait are woken in `turns`: a chunk that has thousands of readers holds up nothing else. Over 100 lines: what is shown, and to whom,
 * is one state.
 */
export function createLog(host: LogHost & { turns: Turns }, source: LogSource): Log {
  const { turns } = host
  const { runId } = source
  const tail: Uint8Array[] = []
  /** The page that was made last. Readers at the same chunk share it. */
  let shared: (Page & { after: number }) | undefined
  const waiting = new Set<() => void>()
  let tailBytes = 0
  let count = 0
  /** These chunks are committed, but perhaps not on the disk yet. */
  let hidden: string[] = []
  let isSyncing = false
  let readerCount = 0
  /** The number of readers that are still to be woken; those that have waited longest come first. */
  let due = 0
  let state: 'open' | 'failing' | 'ended' | 'lost' = 'open'

  /** Wakes all readers that wait now: the first at once and the others in turns. */
  function wakeAll(): void {
    const isWaking = due > 0
    due = waiting.size
    if (!isWaking) void wakeDue()
  }

  async function wakeDue(): Promise<void> {
    for (;;) {
      const woken = waiting.values().take(WOKEN_AT_ONCE).toArray()
      for (const wake of woken) {
        // The reader may wait again at once, and then comes last.
        waiting.delete(wake)
        wake()
      }
      due = Math.min(due - woken.length, waiting.size)
      if (due <= 0) return
      await turns.next(runId)
    }
  }

  function reveal(chunks: readonly string[]): void {
    shared = undefined
    for (const chunk of chunks) {
      count += 1
      const bytes = toFrame(source, count, chunk)
      tail.push(bytes)
      tailBytes += bytes.length
    }
    while (tail.length > tailFrames || (tailBytes > pageBytes && tail.length > 1))
      tailBytes -= tail.shift()?.length ?? 0
    wakeAll()
  }

  /** Chunks that come during a sync share the next one. */
  async function revealSynced(): Promise<void> {
    isSyncing = true
    while (hidden.length > 0) {
      const last = count + hidden.length
      const isOnDisk = await sync(host.db).then(
        () => true,
        () => false,
      )
      if (isOnDisk) reveal(hidden.splice(0, last - count))
      else await Bun.sleep(RETRY_MS)
    }
    isSyncing = false
  }

  return {
    get count() {
      return count
    },
    get stored() {
      return count + hidden.length
    },
    get readerCount() {
      return readerCount
    },
    get ended() {
      return state === 'ended' || state === 'lost'
    },
    read(after) {
      if (after < count - tail.length) return storedPage(host, source, after, { count })
      if (after < count) {
        if (shared?.after !== after) shared = { after, bytes: joined(tail.slice(after - count)), last: count }
        return shared
      }
      if (state === 'lost' || state === 'failing') throw new Error('The end of this run could not be stored.')
      return undefined
    },
    wait(wake) {
      waiting.add(wake)
    },
    forget(wake) {
      waiting.delete(wake)
    },
    attach() {
      readerCount += 1
      return () => {
        readerCount -= 1
      }
    },
    show(chunks) {
      if (!isFull(host.db)) return reveal(chunks)
      hidden.push(...chunks)
      if (!isSyncing) void revealSynced()
    },
    showStored() {
      const stored = hidden
      hidden = []
      if (stored.length > 0) reveal(stored)
    },
    fail() {
      state = 'failing'
      wakeAll()
    },
    end(lost = false) {
      state = lost ? 'lost' : 'ended'
      hidden = []
      wakeAll()
    },
  }
}

/** True when a reader has a chunk `after` that is not stored. */
export const isBeyond = (db: Database, runId: string, after: number): boolean =>
  after > 0 && !hasChunk(db, runId, after)

/** The log of a run that has ended. */
export function openStoredLog(host: LogHost, source: LogSource): ChunkSource {
  const count = lastChunk(host.db, source.runId)
  return {
    ended: true,
    read: after => (after < count ? storedPage(host, source, after, { count, end: count }) : undefined),
    wait: () => {},
    forget: () => {},
    attach: () => () => {},
  }
}

/** Empty for a chunk that the profile does not have: its number is skipped. */
function toFrame({ runId, profile }: LogSource, seq: number, json: string): Uint8Array {
  const projected = projectJson(json, profile)
  return projected === undefined ? new Uint8Array() : frame(runId, seq, projected)
}

/**
 * A page ends where other readers' pages end, wherever this one began, and at `count`, the last chunk that may be shown. A whole page
 * never changes, and neither does the last one, once the log has ended.
 */
function storedPage(
  { db, pages }: LogHost,
  source: LogSource,
  after: number,
  { count, end }: { count: number; end?: number },
): Page {
  const name = `${source.runId}/${after}`
  const found = pages.find(name)
  if (found) return found
  const until = (Math.floor(after / PAGE_CHUNKS) + 1) * PAGE_CHUNKS
  const plain = readPlainChunks(db, source.runId, { after, until: Math.min(until, count) }, frameTexts(source.runId))
  if (!plain) return pageAfterGap(db, source, after)
  const page = withOthers(db, source, after, plain)
  if (after % PAGE_CHUNKS === 0 && (page.last === until || page.last === end)) pages.keep(name, page)
  return page
}

/** Puts the frames of the other chunks where they belong. */
function withOthers(db: Database, source: LogSource, after: number, { bytes, last }: PlainChunks): Page {
  const pieces: Uint8Array[] = []
  let from = 0
  let length = 0
  const others = bytes.includes(0) ? listOtherChunks(db, source.runId, after, last) : []
  for (const { seq, chunk } of others) {
    const place = bytes.indexOf(0, from)
    pieces.push(bytes.subarray(from, place), toFrame(source, seq, chunk))
    from = place + 1
    length += chunk.length
    if (length >= pageBytes) return { bytes: joined(pieces), last: seq }
  }
  return { bytes: joined([...pieces, bytes.subarray(from)]), last }
}

/** Makes the page after numbers that the log left out. */
function pageAfterGap(db: Database, source: LogSource, after: number): Page {
  const { runId } = source
  const rows = listChunks(db, runId, after, pageBytes)
  const first = rows[0]?.seq
  const last = rows.at(-1)?.seq
  // It was purged while a reader waited, or deleted with its thread. A gap must never look like a complete stream.
  const isGap = first !== after + 1 + LOST_SEQS || !hasChunk(db, runId, after)
  if (last === undefined || isGap) throw new Error('The log of this run is gone.')
  return { bytes: joined(rows.map(row => toFrame(source, row.seq, row.chunk))), last }
}

const joined = (frames: readonly Uint8Array[]): Uint8Array => {
  const [first] = frames
  return first && frames.length === 1 ? first : Buffer.concat(frames)
}
