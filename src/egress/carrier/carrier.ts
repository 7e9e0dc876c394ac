import { dlopen, FFIType, ptr } from 'bun:ffi'
import { closeSync, writeSync } from 'node:fs'
import type { Socket } from 'node:net'
import { canStartThread } from '../../descriptor.ts'
import { isObject } from '../../read/json.ts'
import { threadScript } from './thread.macro.ts' with { type: 'macro' }
import type { ThreadReport, ThreadStart } from './thread.ts'

/** Carries tunnels in another thread, which starts with the first tunnel and ends some time after the last. */
export interface Carrier {
  /**
   * Carries the bytes between two sockets from now on, until both directions have ended or one socket breaks. Nothing may wait to
   * be read or sent in either. The sockets close here, and their connections stay open. Undefined when they cannot be carried;
   * both are unchanged then.
   */
  carry(one: Socket, other: Socket): Carried | undefined
  /** How many bytes were carried from the first socket to the other, and back. */
  readonly moved: Readonly<Float64Array>
  close(): void
}

export interface Carried {
  /** Resolves when both connections are closed. */
  ended: Promise<void>
  /** Cuts both connections. */
  destroy(): void
}

const REST_MS = 60_000
const [O_NONBLOCK, O_CLOEXEC, F_SETFL, F_DUPFD_CLOEXEC] = [0x800, 0x80000, 4, 1030]
/** The largest number of a tunnel: twice that number must fit into 32 bits. */
const MAX_ID = 0x3fffffff

export function createCarrier(bounds: Partial<Bounds> = {}): Carrier {
  const { idleMs = 15 * 60_000, stalledMs = 5 * 60_000 } = bounds
  const moved = new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT))
  let thread: Thread | undefined

  return {
    moved,
    carry(one, other) {
      const [first, second] = [descriptorOf(one), descriptorOf(other)]
      if (first === undefined || second === undefined) return undefined
      if (!thread || thread.isOver) thread = startThread({ idleMs, stalledMs, moved })
      const carried = thread?.carry(first, second)
      if (!carried) return undefined
      one.destroy()
      other.destroy()
      return carried
    },
    close: () => thread?.end(),
  }
}

type Bounds = Omit<ThreadStart, 'commands' | 'epoll'>

interface Thread {
  readonly isOver: boolean
  /** Copies the descriptors. Undefined when this process may not have that many. */
  carry(one: number, other: number): Carried | undefined
  /** Cuts all tunnels. */
  end(): void
}

/** Undefined when this process may not have the thread's descriptors. */
function startThread(bounds: Bounds): Thread | undefined {
  const { pipe2, fcntl, epoll_create1 } = openLibc()
  const ends = new Int32Array(2)
  if (!canStartThread()) return undefined
  if (pipe2(ptr(ends), O_CLOEXEC) !== 0) return undefined
  const [readEnd = -1, commands = -1] = ends
  const epoll = epoll_create1(O_CLOEXEC)
  if (epoll < 0) {
    closeSync(readEnd)
    closeSync(commands)
    return undefined
  }
  fcntl(readEnd, F_SETFL, O_NONBLOCK)
  const url = URL.createObjectURL(new Blob([threadScript()], { type: 'application/javascript' }))
  const worker = new Worker(url)
  worker.unref()
  const carried = new Map<number, { descriptors: number[]; resolve(): void }>()
  let lastId = 0
  let isOver = false
  let rest: Timer | undefined

  const command = (id: number, one = -1, other = -1) => void writeSync(commands, Int32Array.of(id, one, other))
  const end = () => {
    if (isOver) return
    isOver = true
    clearTimeout(rest)
    command(0)
    closeSync(commands)
  }
  worker.onmessage = ({ data: id }: MessageEvent<ThreadReport>) => {
    if (id === 0) return worker.terminate()
    carried.get(id)?.resolve()
    carried.delete(id)
    if (carried.size === 0 && !isOver) rest = setTimeout(end, REST_MS).unref()
  }
  // The thread itself has failed, so its tunnels are cut.
  worker.onerror = () => {
    end()
    for (const { descriptors, resolve } of carried.values()) {
      for (const descriptor of descriptors) closeSync(descriptor)
      resolve()
    }
    carried.clear()
  }
  worker.postMessage({ commands: readEnd, epoll, ...bounds } satisfies ThreadStart)

  return {
    get isOver() {
      return isOver
    },
    carry(one, other) {
      const copied = [one, other].map(number => fcntl(number, F_DUPFD_CLOEXEC, 0))
      const descriptors = copied.filter(number => number >= 0)
      if (descriptors.length < copied.length) {
        for (const descriptor of descriptors) closeSync(descriptor)
        return undefined
      }
      clearTimeout(rest)
      lastId = (lastId % MAX_ID) + 1
      const id = lastId
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      carried.set(id, { descriptors, resolve })
      command(id, ...descriptors)
      return { ended, destroy: () => void (carried.has(id) && !isOver && command(id)) }
    },
    end,
  }
}

let opened: ReturnType<typeof loadLibc> | undefined
const openLibc = () => (opened ??= loadLibc())

function loadLibc() {
  const { i32, pointer } = FFIType
  return dlopen('libc.so.6', {
    pipe2: { args: [pointer, i32], returns: i32 },
    fcntl: { args: [i32, i32, i32], returns: i32 },
    epoll_create1: { args: [i32], returns: i32 },
  }).symbols
}

/** The descriptor of an open socket, which Bun keeps in the same field as Node. */
function descriptorOf(socket: Socket): number | undefined {
  const handle = !socket.destroyed && '_handle' in socket ? socket._handle : undefined
  return isObject(handle) && typeof handle.fd === 'number' && handle.fd >= 0 ? handle.fd : undefined
}
