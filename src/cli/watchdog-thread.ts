import { dlopen } from 'bun:ffi'
import { readFileSync, writeSync } from 'node:fs'

/**
 * The message that starts the watch: the memory shared with the event loop, how long that may be blocked, and the form of the
 * last line.
 */
export interface Watch {
  memory: SharedArrayBuffer
  limitMs: number
  form: 'text' | 'json'
}

/** Indexes in the shared memory: the beats, a word to wait on, and the length of the last work's description. */
export const [BEATS, SLEEP, LENGTH] = [0, 1, 2] as const
/** The description starts at this byte. */
export const HEAD_BYTES = 16

/** The limit is counted in this many parts, so that a process that was stopped as a whole, or whose machine slept, goes on. */
const LOOKS = 6
/** The exit code, which nothing else uses. */
const EXIT_CODE = 70
/** A tick of CPU time, as USER_HZ defines it. */
const TICK_MS = 10
/** Nobody may be reading stderr: the process ends after this time all the same. */
const WRITTEN_WITHIN_SECONDS = 5

/** Makes this worker watch the main thread's event loop, which cannot act itself while it is blocked. */
export function listenForWatch(): void {
  addEventListener('message', event => watch((event as MessageEvent<Watch>).data))
}

/** Logs what is known and ends the process once the loop was blocked for too long. Never returns. */
function watch({ memory, limitMs, form }: Watch): never {
  const words = new Int32Array(memory, 0, HEAD_BYTES / Int32Array.BYTES_PER_ELEMENT)
  let last = -1
  let missed = 0
  let before = mainThread()
  while (missed < LOOKS) {
    Atomics.wait(words, SLEEP, 0, limitMs / LOOKS)
    const beats = Atomics.load(words, BEATS)
    if (beats !== last) before = mainThread()
    missed = beats === last ? missed + 1 : 0
    last = beats
  }
  const { symbols } = dlopen('libc.so.6', {
    _exit: { args: ['i32'], returns: 'void' },
    alarm: { args: ['u32'], returns: 'u32' },
  })
  symbols.alarm(WRITTEN_WITHIN_SECONDS)
  const { state, cpuMs } = mainThread()
  const what = new TextDecoder().decode(new Uint8Array(memory, HEAD_BYTES, Atomics.load(words, LENGTH)).slice())
  const [call = ''] = read('syscall').split(' ')
  const where = call === 'running' || call === '' ? '' : `, in system call ${call} (${read('wchan') || '?'})`
  const took = `took ${cpuMs - before.cpuMs} ms of a CPU since`
  const standstill = `the event loop has stood still for ${limitMs / 1000} s: the server ends, to be started again`
  const line = `${standstill}. Begun last: ${what || 'nothing'}. Its thread is in state ${state}${where} and ${took}.`
  const json = () => JSON.stringify({ time: new Date().toISOString(), level: 'error', message: line })
  writeSync(2, form === 'json' ? `${json()}\n` : `threadbox: ${line}\n`)
  symbols._exit(EXIT_CODE)
  throw new Error('the process has not ended')
}

function mainThread(): { state: string; cpuMs: number } {
  const stat = read('stat')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return { state: fields[0] ?? '', cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS }
}

function read(name: string): string {
  try {
    return readFileSync(`/proc/self/task/${process.pid}/${name}`, 'utf8').trim()
  } catch {
    return ''
  }
}
