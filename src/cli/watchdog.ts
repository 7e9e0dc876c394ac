import type { EventLoop } from '../core/runtime.ts'
import { canStartThread } from '../descriptor.ts'
import { mainFile } from '../start/executable.ts'
import { BEATS, HEAD_BYTES, LENGTH, type Watch } from './watchdog-thread.ts'

/** Ends the process when the event loop is blocked. */
export interface Watchdog extends EventLoop {
  /**
   * Starts to watch. Call it once the process may use a thread; earlier work may block for long. With `limitMs` 0 it only
   * measures.
   */
  start(limitMs: number, form: Watch['form']): void
  close(): void
}

/** How often the loop signals that it runs. Longer blocks are noticed; a shorter interval would cost an idle server CPU time. */
const BEAT_MS = 250
/** The time that the figures in /health cover. */
const WINDOW_MS = 60_000
const WHAT_BYTES = 1000
/** The last work that began is not always what blocks the loop: earlier work may have continued. */
const KEPT = 5

/** `alive` is called with each beat, for other watchdogs such as systemd's. */
export function createWatchdog(alive: () => void): Watchdog {
  const memory = new SharedArrayBuffer(HEAD_BYTES + WHAT_BYTES)
  const words = new Int32Array(memory, 0, 4)
  const room = new Uint8Array(memory, HEAD_BYTES)
  const encoder = new TextEncoder()
  /** The delays of the last minute; the oldest is overwritten first. */
  const delays = new Float32Array(WINDOW_MS / BEAT_MS)
  let count = 0
  const begun: string[] = []
  let dueAt = performance.now() + BEAT_MS
  let worker: Worker | undefined
  let wantedMs = 0
  let wantedForm: Watch['form'] = 'text'

  /**
   * Without this handler Bun would end the process. The server goes on unwatched, and tries again when the figures begin anew.
   */
  function watch() {
    if (wantedMs === 0 || worker || !canStartThread()) return
    // The program's own file is used, because Bun's compiler would stay in memory for a text.
    worker = new Worker(mainFile)
    worker.postMessage({ memory, limitMs: wantedMs, form: wantedForm } satisfies Watch)
    worker.unref()
  }

  const timer = setInterval(() => {
    const now = performance.now()
    delays[count++ % delays.length] = Math.max(0, now - dueAt)
    dueAt = now + BEAT_MS
    Atomics.add(words, BEATS, 1)
    if (count % delays.length === 0) watch()
    alive()
  }, BEAT_MS)

  return {
    start(limitMs, form) {
      wantedMs = limitMs
      wantedForm = form
      watch()
    },
    entered(what) {
      if (what === begun[0]) return
      begun.unshift(what)
      begun.length = Math.min(begun.length, KEPT)
      Atomics.store(words, LENGTH, encoder.encodeInto(begun.join('; before it '), room).written)
    },
    delayMs() {
      const sorted = delays.slice(0, Math.min(count, delays.length)).sort()
      const at = (share: number) => Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0)
      return { p50: at(0.5), p99: at(0.99), max: at(1) }
    },
    close() {
      clearInterval(timer)
      worker?.terminate()
    },
  }
}
