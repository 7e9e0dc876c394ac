import { beforeTimeout } from '../async/timeout.ts'
import { canStartThread } from '../descriptor.ts'

/** Limits how long a plugin's code may take at the start; from another thread, since that code may block the event loop. */
export interface Watchdog {
  /** Rejects when the promise takes too long. */
  within<Value>(file: string, start: () => Promise<Value>): Promise<Value>
  /** The same for a synchronous function. */
  during<Value>(file: string, make: () => Value): Value
  close(): void
}

/** The main thread cannot act while a plugin's code blocks it: this worker prints the problems so far and ends the process. */
const source = `
import { dlopen } from 'bun:ffi'
import { writeSync } from 'node:fs'
const { symbols } = dlopen('libc.so.6', { _exit: { args: ['i32'], returns: 'void' } })
let timer
self.onmessage = ({ data }) => {
  clearTimeout(timer)
  if (data) timer = setTimeout(() => {
    writeSync(2, data.text)
    symbols._exit(2)
  }, data.ms)
}`

/** The worker waits this much longer: a slow import that leaves the event loop free is ended by `within`, and the next file follows. */
const HELD_MS = 1000

/** When a file blocks the event loop, the `problems` so far are printed with it, because the process ends. */
export function watchOver(ms: number, problems: readonly string[]): Watchdog {
  const late = (file: string) => `--plugin ${file}: did not load within ${ms / 1000} seconds`
  // Without a thread, only a file that blocks the event loop for ever is not ended.
  const worker = canStartThread()
    ? new Worker(URL.createObjectURL(new Blob([source], { type: 'application/javascript' })))
    : undefined
  const watch = (file: string) => {
    const text = `threadbox: ${[...problems, late(file)].join('\n')}\n`
    worker?.postMessage({ ms: ms + HELD_MS, text })
  }
  const release = () => worker?.postMessage(undefined)
  return {
    async within(file, start) {
      watch(file)
      try {
        return await beforeTimeout(ms, start(), () => {
          throw new Error(`did not load within ${ms / 1000} seconds`)
        })
      } finally {
        release()
      }
    },
    during(file, make) {
      watch(file)
      try {
        return make()
      } finally {
        release()
      }
    },
    close: () => worker?.terminate(),
  }
}
