import { dlopen } from 'bun:ffi'
import { readFileSync, writeSync } from 'node:fs'

/** What the thread is sent: the memory that it shares with the event loop, how long that may stand still, and the form of its last line. */
export interface Watch {
  memory: SharedArrayBuffer
  limitMs: number
  form: 'text' | 'json'
}

/** Places of the words in the shared memory: beats, one to wait on, the length of the description of the last work. */
export const [BEATS, SLEEP, LENGTH] = [0, 1, 2] as const
/** The description follows these. */
export const HEAD_BYTES = 16

/** The limit is counted in this many parts, so that a process that was stopped as a whole, or whose machine slept, goes on. */
const LOOKS = 6
/** The exit code, which is used for nothing else. */
const EXIT_CODE = 70
/** Of a CPU, by USER_HZ. */
const TICK_MS = 10
/** The reader of stderr may be stuck: the process ends after this all the same. */
const WRITTEN_WITHIN_SECONDS = 5

/** Makes this worker watch the event loop of the main thread, which cannot act while it is blocked. */
export function listenForWatch(): void {
  addEventListener('message', event => watch((event as MessageEvent<Watch>).data))
}

/** Logs what is known and ends the process when the loop has stood still. Returns never. */
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
