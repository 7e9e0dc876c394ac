/** Keeps foreign code from holding a start up: by a time limit, and from another thread where it holds the event loop too. */
export interface Watchdog {
  /** Rejects when the promise takes too long. */
  within<Value>(file: string, start: () => Promise<Value>): Promise<Value>
  /** For what is not asynchronous. */
  during<Value>(file: string, make: () => Value): Value
  close(): void
}

/** Nothing of this thread runs while foreign code loops: this one says what is known by then and ends the process. */
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

/** Longer than the limit by this: a wait that leaves the event loop free is ended by `within`, which goes on with the rest. */
const HELD_MS = 1000

/** `problems` are told too when a file holds the event loop: nothing else can be said after it. */
export function watchOver(ms: number, problems: readonly string[]): Watchdog {
  const late = (file: string) => `--plugin ${file}: did not load within ${ms / 1000} seconds`
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'application/javascript' })))
  const watch = (file: string) => {
    const text = `threadbox: ${[...problems, late(file)].join('\n')}\n`
    worker.postMessage({ ms: ms + HELD_MS, text })
  }
  const release = () => worker.postMessage(undefined)
  return {
    async within(file, start) {
      watch(file)
      const { promise: limit, reject } = Promise.withResolvers<never>()
      const timer = setTimeout(() => reject(new Error(`did not load within ${ms / 1000} seconds`)), ms)
      try {
        return await Promise.race([start(), limit])
      } finally {
        clearTimeout(timer)
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
    close: () => worker.terminate(),
  }
}
