import type { EventLoop } from '../core/runtime.ts'

/** Ends the process when the event loop is blocked. */
export interface Watchdog extends EventLoop {
  /** Starts to watch; work before that may block for long. `limitMs` 0: it only measures. */
  start(limitMs: number): void
  close(): void
}

/** How often the loop signals that it runs. Longer blocks are noticed; a shorter interval would cost an idle server CPU time. */
const BEAT_MS = 250
/** The time that the figures in /health cover. */
const WINDOW_MS = 60_000
/** The limit is counted in this many parts, so that a process that was stopped as a whole, or whose machine slept, goes on. */
const LOOKS = 6
const WHAT_BYTES = 1000
/** The last work that began is not always what blocks the loop: earlier work may have continued. */
const KEPT = 5
/** The exit code, which is used for nothing else. */
const EXIT_CODE = 70

/** Offsets in the shared memory: beats, a word to wait on, the length of the description of the last work; then its bytes. */
const [BEATS, SLEEP, LENGTH] = [0, 1, 2]
const HEAD_BYTES = 16

/** The main thread cannot act while its loop is blocked: this worker logs what is known and ends the process. */
const source = `
import { dlopen } from 'bun:ffi'
import { readFileSync, writeSync } from 'node:fs'
const tick = 10 // ms of a CPU, by USER_HZ
const read = name => { try { return readFileSync('/proc/self/task/' + process.pid + '/' + name, 'utf8').trim() } catch { return '' } }
const cpuMs = () => {
  const stat = read('stat')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return { state: fields[0] ?? '', ms: (Number(fields[11]) + Number(fields[12])) * tick }
}
self.onmessage = ({ data: { memory, limitMs } }) => {
  const { symbols } = dlopen('libc.so.6', { _exit: { args: ['i32'], returns: 'void' }, alarm: { args: ['u32'], returns: 'u32' } })
  const words = new Int32Array(memory, 0, 4)
  let last = -1
  let missed = 0
  let before = cpuMs()
  while (missed < ${LOOKS}) {
    Atomics.wait(words, ${SLEEP}, 0, limitMs / ${LOOKS})
    const beats = Atomics.load(words, ${BEATS})
    if (beats !== last) before = cpuMs()
    missed = beats === last ? missed + 1 : 0
    last = beats
  }
  // The reader of stderr may be stuck.
  symbols.alarm(5)
  const { state, ms } = cpuMs()
  const what = new TextDecoder().decode(new Uint8Array(memory, ${HEAD_BYTES}, Atomics.load(words, ${LENGTH})).slice())
  const call = read('syscall').split(' ')[0]
  const where = call === 'running' || call === '' ? '' : ', in system call ' + call + ' (' + (read('wchan') || '?') + ')'
  writeSync(2, 'threadbox: the event loop has stood still for ' + limitMs / 1000 + ' s: the server ends, to be started again. ' +
    'Begun last: ' + (what || 'nothing') + '. Its thread is in state ' + state + where + ' and took ' + (ms - before.ms) + ' ms of a CPU since.\\n')
  symbols._exit(${EXIT_CODE})
}`

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

  const timer = setInterval(() => {
    const now = performance.now()
    delays[count++ % delays.length] = Math.max(0, now - dueAt)
    dueAt = now + BEAT_MS
    Atomics.add(words, BEATS, 1)
    alive()
  }, BEAT_MS)

  return {
    start(limitMs) {
      if (limitMs === 0) return
      worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'application/javascript' })))
      worker.postMessage({ memory, limitMs })
      worker.unref()
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
