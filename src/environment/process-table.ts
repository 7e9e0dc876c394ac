import { beforeTimeout } from '../async/timeout.ts'
import { ApiError } from '../errors.ts'
import type {
  EnvironmentProcesses,
  OutputBatch,
  OutputStream,
  ProcessExit,
  ProcessInfo,
  StartOptions,
  TerminalSize,
} from '../plugin-api/index.ts'
import { OutputRing, RING_BYTES } from './output-ring.ts'

/** Processes that a table keeps, running and ended. */
export const MAX_PROCESSES = 128
/** The most output that one answer has. */
export const MAX_BATCH_BYTES = 128 * 1024
const MAX_COMMAND_LENGTH = 1000
/** How long a reader counts as present after its last read, for processes that wait only for readers that are present. */
const ATTACHED_MS = 10_000

/** A process as a table needs it. */
export interface StartedProcess {
  readonly pid: number
  /** Resolves when it has ended and its output was taken. Rejects when it was lost. */
  readonly exited: Promise<ProcessExit>
  /** Stops early when `isGone`. Rejects when nobody reads any more. Absent without stdin. */
  write?(bytes: Uint8Array, isGone: () => boolean): Promise<void>
  closeStdin?(): void
  signal(name: NodeJS.Signals): void
  resize(size: TerminalSize): void
  /** Resolves when nothing of its tree is alive. */
  killTree(): Promise<void>
}

/** Waited for before more of the stream is read. */
export type TakeOutput = (stream: OutputStream, bytes: Uint8Array) => void | Promise<void>

interface Entry {
  info: Omit<ProcessInfo, 'outputStart' | 'outputEnd'>
  process: StartedProcess
  ring: OutputRing
  /** Up to here somebody has read. */
  readTo: number
  /** The time of the last read, by performance.now(). */
  readAtMs: number
  /** Resolves with the next reading, or the end. */
  taken: PromiseWithResolvers<void>
  isRemoved: boolean
  /** Resolves with the next output, or the end. */
  moved: PromiseWithResolvers<void>
}

/**
 * Keeps the processes that `start` starts, with the last of their output. Nobody's reading holds a process up.
 *
 * Over 100 lines: one table, and the operations on its rows.
 */
export function createProcessTable(
  start: (options: StartOptions, take: TakeOutput) => Promise<StartedProcess>,
  { attachedMs = ATTACHED_MS } = {},
): EnvironmentProcesses {
  /** By pid, the oldest first. */
  const entries = new Map<number, Entry>()
  let starting = 0

  const entryOf = (pid: number): Entry => {
    const entry = entries.get(pid)
    if (!entry) throw new ApiError('process_not_found', `There is no process ${pid}.`)
    return entry
  }
  const running = (pid: number): Entry => {
    const entry = entryOf(pid)
    if (entry.info.exit) throw new ApiError('conflict', `The process ${pid} has ended.`)
    return entry
  }
  const makeRoom = () => {
    if (entries.size + starting < MAX_PROCESSES) return
    const ended = [...entries.values()].find(({ info }) => info.exit)
    if (!ended) throw new ApiError('conflict', `${MAX_PROCESSES} processes run already: end one first.`)
    entries.delete(ended.info.pid)
  }
  const markRead = (entry: Entry, offset: number) => {
    entry.readTo = Math.max(entry.readTo, offset)
    entry.readAtMs = performance.now()
    entry.taken.resolve()
    entry.taken = Promise.withResolvers()
  }
  const drop = (entry: Entry) => {
    if (entries.get(entry.info.pid) === entry) entries.delete(entry.info.pid)
    entry.isRemoved = true
    markRead(entry, entry.ring.end)
    move(entry)
  }
  const move = (entry: Entry) => {
    entry.moved.resolve()
    entry.moved = Promise.withResolvers()
  }
  const end = (entry: Entry, exit: ProcessExit) => {
    entry.info.exit = exit
    entry.info.endedAt = new Date().toISOString()
    entry.process.closeStdin?.()
    move(entry)
  }

  return {
    async start(options) {
      makeRoom()
      starting++
      const ring = new OutputRing()
      const made = Promise.withResolvers<Entry>()
      const take: TakeOutput = async (stream, bytes) => {
        const entry = await made.promise
        const isFull = () => ring.end > entry.readTo && ring.end + bytes.byteLength > entry.readTo + RING_BYTES
        while (options.waitForReader && isFull() && !entry.isRemoved) {
          if (options.waitForReader !== 'attached') await entry.taken.promise
          else if (!(await isTakenSoon(entry, attachedMs))) break
        }
        // Processes that it left in the background may print for ever.
        if (entry.info.exit || entry.isRemoved) return
        ring.append(stream, bytes)
        move(entry)
      }
      try {
        const process = await start(options, take)
        const entry = entryFor(process, options, ring)
        // One that has ended may have had the same pid.
        entries.delete(process.pid)
        entries.set(process.pid, entry)
        made.resolve(entry)
        process.exited.then(
          exit => end(entry, exit),
          () => drop(entry),
        )
        return shown(entry)
      } finally {
        starting--
      }
    },
    async list() {
      return [...entries.values()].map(shown)
    },
    async get(pid) {
      return shown(entryOf(pid))
    },
    async read(pid, offset, { wait, signal }) {
      const entry = entryOf(pid)
      // A reader that asks for future output has read nothing yet.
      if (offset <= entry.ring.end) markRead(entry, offset)
      for (;;) {
        signal?.throwIfAborted()
        const batch: OutputBatch = entry.ring.read(offset, MAX_BATCH_BYTES)
        const { exit } = entry.info
        const read = batch.pieces.reduce((sum, { bytes }) => sum + bytes.byteLength, batch.offset)
        if (exit && read === entry.ring.end) return { ...batch, exit }
        if (batch.pieces.length > 0 || !wait) {
          entry.readAtMs = performance.now()
          return batch
        }
        await untilMoved(entry, signal)
        if (entry.isRemoved) throw new ApiError('process_not_found', `The process ${pid} was removed.`)
      }
    },
    async write(pid, bytes, signal) {
      const { info, process } = running(pid)
      if (!process.write) throw noInput(pid)
      await process
        .write(bytes, () => signal?.aborted === true || info.exit !== undefined)
        .catch(() => {
          throw new ApiError('conflict', `The process ${pid} reads no more.`)
        })
    },
    async closeStdin(pid) {
      const { info, process } = entryOf(pid)
      if (info.pty) throw new ApiError('invalid_request', 'A terminal stays open: send it Ctrl-D, the byte 4.')
      if (!process.closeStdin) throw noInput(pid)
      // The bytes that were written last may have ended it.
      if (!info.exit) process.closeStdin()
    },
    async signal(pid, name) {
      running(pid).process.signal(name)
    },
    async resize(pid, size) {
      const { info, process } = running(pid)
      if (!info.pty) throw new ApiError('invalid_request', `The process ${pid} has no terminal.`)
      info.pty = size
      process.resize(size)
    },
    async remove(pid) {
      const entry = entryOf(pid)
      await entry.process.killTree()
      drop(entry)
    },
  }
}

const noInput = (pid: number) => new ApiError('invalid_request', `The process ${pid} was started without stdin.`)

const entryFor = (process: StartedProcess, options: StartOptions, ring: OutputRing): Entry => ({
  info: infoOf(process, options),
  process,
  ring,
  readTo: 0,
  readAtMs: performance.now(),
  taken: Promise.withResolvers(),
  isRemoved: false,
  moved: Promise.withResolvers(),
})

function infoOf({ pid, write }: StartedProcess, { command, name, pty }: StartOptions): Entry['info'] {
  const line = typeof command === 'string' ? command : command.join(' ')
  return {
    pid,
    ...(name !== undefined && { name }),
    command: line.length > MAX_COMMAND_LENGTH ? `${line.slice(0, MAX_COMMAND_LENGTH)}…` : line,
    stdin: write !== undefined,
    ...(pty && { pty }),
    startedAt: new Date().toISOString(),
  }
}

const shown = ({ info, ring }: Entry): ProcessInfo => ({ ...info, outputStart: ring.start, outputEnd: ring.end })

/** Waits for a read while readers still count as present. */
async function isTakenSoon({ readAtMs, taken }: Entry, attachedMs: number): Promise<boolean> {
  const leftMs = readAtMs + attachedMs - performance.now()
  return (
    leftMs > 0 &&
    (await beforeTimeout(
      leftMs,
      taken.promise.then(() => true),
      () => false,
    ))
  )
}

/** Resolves when something has come, or the signal is aborted. */
async function untilMoved({ moved }: Entry, signal: AbortSignal | undefined): Promise<void> {
  const aborted = Promise.withResolvers<void>()
  const abort = () => aborted.resolve()
  signal?.addEventListener('abort', abort)
  await Promise.race([moved.promise, aborted.promise])
  signal?.removeEventListener('abort', abort)
}
