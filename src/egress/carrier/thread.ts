import { dlopen, FFIType, ptr, read } from 'bun:ffi'

/**
 * The thread that carries tunnels: the kernel moves pages from one socket to the other (splice), through a pipe that a direction
 * holds while bytes wait in it. The thread is bundled as text, so it imports nothing else.
 */

/** The thread's start: the pipe for commands and an instance of epoll, both of which it owns, and its bounds. */
export interface ThreadStart {
  commands: number
  epoll: number
  /** A tunnel in which no byte has moved for this long is cut. */
  idleMs: number
  /** A tunnel in which bytes have waited for a reader for this long is cut. */
  stalledMs: number
  /** The byte counts of both directions, which only this thread writes. */
  moved: Float64Array
}

/** The number of a tunnel that has ended and whose sockets are closed; 0 when the thread itself has ended. */
export type ThreadReport = number

/** One direction of a tunnel, named after the socket that it comes from. */
interface Direction {
  from: number
  to: number
  tunnel: Tunnel
  pipe: Pipe | undefined
  /** How many bytes are in the pipe. */
  held: number
  isReadable: boolean
  isWritable: boolean
  /** Whether its sender has ended it. */
  isEnding: boolean
  /** Whether its receiver has seen the end. */
  isOver: boolean
}

interface Tunnel {
  id: number
  /** One for each way. Each knows its tunnel, so the tunnel is made before them. */
  directions: readonly Direction[]
  movedAt: number
}

interface Pipe {
  readEnd: number
  writeEnd: number
  size: number
}

const BYTES_PER_COMMAND = 12
const SPLICE_NONBLOCK = 2
const [EPOLL_CTL_ADD, EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, EPOLLRDHUP, EPOLLET] = [1, 1, 4, 8, 0x10, 0x2000, 2 ** 31]
const [O_NONBLOCK, O_CLOEXEC, F_SETPIPE_SZ, F_GETPIPE_SZ, SHUT_WR] = [0x800, 0x80000, 1031, 1032, 1]
const [EINTR, EAGAIN] = [4, 11]
/** The layout of epoll's events, which are packed only on x86. */
const [EVENT_BYTES, DATA_AT] = process.arch === 'x64' ? [12, 4] : [16, 8]
const EVENTS = 128
/** How many bytes of one direction move before others have their turn. */
const TURN_BYTES = 4 * 1024 * 1024
/**
 * Bytes in a pipe do not count for any socket's buffer. So few pipes are large; the others have the kernel's default of 64 KiB.
 */
const LARGE_PIPE_BYTES = 1024 * 1024
const MAX_LARGE_PIPES = 32
const MAX_IDLE_PIPES = 8
/**
 * Half of a socket's receive buffer, whatever the machine's maximum: otherwise Linux would let the buffer grow for a reader that
 * stalls. The whole is Linux's usual maximum. A server without the right to set it keeps the machine's.
 */
const RECEIVE_BYTES = 3 * 1024 * 1024
const [SOL_SOCKET, SO_RCVBUFFORCE] = [1, 33]
const SWEEP_MS = 30_000

declare const self: { onmessage(event: { data: ThreadStart }): void; postMessage(report: ThreadReport): void }

self.onmessage = ({ data }) => run(data)

/** Over 100 lines: every event changes the same state. */
function run({ commands, epoll, idleMs, stalledMs, moved: counts }: ThreadStart): void {
  // This thread runs its code often, so it is compiled as usual; the build's policy is for code that only a start runs.
  Bun.unsafe.setJITPolicy(1)
  const { i32, u32, u64, pointer } = FFIType
  const { symbols: libc } = dlopen('libc.so.6', {
    epoll_ctl: { args: [i32, i32, i32, pointer], returns: i32 },
    epoll_wait: { args: [i32, pointer, i32, i32], returns: i32 },
    splice: { args: [i32, pointer, i32, pointer, u64, u32], returns: i32 },
    pipe2: { args: [pointer, i32], returns: i32 },
    fcntl: { args: [i32, i32, i32], returns: i32 },
    setsockopt: { args: [i32, i32, i32, pointer, u32], returns: i32 },
    shutdown: { args: [i32, i32], returns: i32 },
    read: { args: [i32, pointer, u64], returns: i32 },
    close: { args: [i32], returns: i32 },
    __errno_location: { args: [], returns: pointer },
  })
  const errnoAt = libc.__errno_location()
  const errno = () => (errnoAt ? read.i32(errnoAt) : 0)
  const events = new DataView(new ArrayBuffer(EVENTS * EVENT_BYTES))
  const command = new Int32Array(BYTES_PER_COMMAND / 4)
  const ends = new Int32Array(2)
  const room = Int32Array.of(RECEIVE_BYTES)

  const tunnels = new Map<number, Tunnel>()
  /**
   * Directions by the number that epoll returns: twice the tunnel's number, and one more for its second socket. 0 stands for the
   * commands.
   */
  const directions = new Map<number, Direction>()
  const ready = new Set<Direction>()
  const idlePipes: Pipe[] = []
  let largePipes = 0
  let now = performance.now()

  const watch = (fd: number, key: number, flags: number) => {
    events.setUint32(0, flags, true)
    events.setUint32(DATA_AT, key, true)
    events.setUint32(DATA_AT + 4, 0, true)
    return libc.epoll_ctl(epoll, EPOLL_CTL_ADD, fd, ptr(events.buffer))
  }

  const takePipe = (): Pipe | undefined => {
    const idle = idlePipes.pop()
    if (idle) return idle
    if (libc.pipe2(ptr(ends), O_NONBLOCK | O_CLOEXEC) !== 0) return undefined
    const [readEnd = -1, writeEnd = -1] = ends
    if (largePipes < MAX_LARGE_PIPES) libc.fcntl(writeEnd, F_SETPIPE_SZ, LARGE_PIPE_BYTES)
    const size = libc.fcntl(writeEnd, F_GETPIPE_SZ, 0)
    if (size >= LARGE_PIPE_BYTES) largePipes++
    return { readEnd, writeEnd, size }
  }
  const closePipe = (pipe: Pipe) => {
    libc.close(pipe.readEnd)
    libc.close(pipe.writeEnd)
    if (pipe.size >= LARGE_PIPE_BYTES) largePipes--
  }
  const givePipeBack = (direction: Direction) => {
    const { pipe, held } = direction
    direction.pipe = undefined
    if (!pipe) return
    if (held === 0 && idlePipes.length < MAX_IDLE_PIPES) idlePipes.push(pipe)
    else closePipe(pipe)
  }

  const end = (tunnel: Tunnel) => {
    if (!tunnels.delete(tunnel.id)) return
    for (const [at, direction] of tunnel.directions.entries()) {
      directions.delete(2 * tunnel.id + at)
      ready.delete(direction)
      givePipeBack(direction)
      libc.close(direction.from)
    }
    self.postMessage(tunnel.id)
  }

  /**
   * Returns how many bytes moved, 0 at the end, and -1 when epoll will say when to try again. Any other failure breaks the
   * tunnel.
   */
  const splice = (direction: Direction, from: number, to: number, bytes: number): number => {
    const moved = libc.splice(from, null, to, null, bytes, SPLICE_NONBLOCK)
    if (moved >= 0) return moved
    const number = errno()
    if (number === EINTR) return splice(direction, from, to, bytes)
    if (number !== EAGAIN) end(direction.tunnel)
    return -1
  }

  const fill = (direction: Direction): void => {
    direction.pipe ??= takePipe()
    if (!direction.pipe) {
      end(direction.tunnel)
      return
    }
    const count = splice(direction, direction.from, direction.pipe.writeEnd, direction.pipe.size)
    if (count > 0) direction.held = count
    else if (count === 0) direction.isEnding = true
    else direction.isReadable = false
  }

  const drain = (direction: Direction): number => {
    if (!direction.pipe) return 0
    const count = splice(direction, direction.pipe.readEnd, direction.to, direction.held)
    if (count <= 0) direction.isWritable = false
    else {
      direction.held -= count
      const at = direction === direction.tunnel.directions[0] ? 0 : 1
      counts[at] = (counts[at] ?? 0) + count
    }
    return Math.max(count, 0)
  }

  const finish = (direction: Direction): void => {
    const { tunnel, to } = direction
    direction.isOver = true
    libc.shutdown(to, SHUT_WR)
    if (tunnel.directions.every(({ isOver }) => isOver)) end(tunnel)
  }

  /** Moves what can be moved. The direction stays ready when others should have their turn first. */
  const move = (direction: Direction): void => {
    ready.delete(direction)
    const { tunnel } = direction
    for (let moved = 0; tunnels.has(tunnel.id) && !direction.isOver; ) {
      if (direction.held > 0) {
        if (!direction.isWritable) return
        moved += drain(direction)
        tunnel.movedAt = now
        continue
      }
      givePipeBack(direction)
      if (direction.isEnding) finish(direction)
      else if (!direction.isReadable) return
      else if (moved >= TURN_BYTES) return void ready.add(direction)
      else fill(direction)
    }
  }

  const add = (id: number, one: number, other: number) => {
    const direction = (from: number, to: number): Direction => ({
      ...{ from, to, tunnel, pipe: undefined, held: 0 },
      // epoll reports at once what a socket is ready for.
      ...{ isReadable: false, isWritable: false, isEnding: false, isOver: false },
    })
    const tunnel: Tunnel = { id, directions: [], movedAt: now }
    tunnel.directions = [direction(one, other), direction(other, one)]
    tunnels.set(id, tunnel)
    for (const [at, each] of tunnel.directions.entries()) {
      directions.set(2 * id + at, each)
      libc.setsockopt(each.from, SOL_SOCKET, SO_RCVBUFFORCE, ptr(room), 4)
      const flags = EPOLLIN + EPOLLOUT + EPOLLRDHUP + EPOLLET
      if (watch(each.from, 2 * id + at, flags) !== 0) return end(tunnel)
    }
  }

  /** Obeys the commands. Returns false when the thread should end. */
  const obey = (): boolean => {
    while (libc.read(commands, ptr(command), BYTES_PER_COMMAND) === BYTES_PER_COMMAND) {
      const [id = 0, one = 0, other = 0] = command
      const tunnel = tunnels.get(id)
      if (id === 0) return false
      if (one >= 0) add(id, one, other)
      else if (tunnel) end(tunnel)
    }
    return true
  }

  const sweep = () => {
    for (const tunnel of [...tunnels.values()]) {
      const isStalled = tunnel.directions.some(({ held }) => held > 0)
      if (now - tunnel.movedAt > (isStalled ? stalledMs : idleMs)) end(tunnel)
    }
  }

  watch(commands, 0, EPOLLIN)
  const sweepMs = Math.min(SWEEP_MS, idleMs, stalledMs)
  for (let goesOn = true, sweptAt = now; goesOn; ) {
    const wait = ready.size > 0 ? 0 : tunnels.size > 0 ? sweepMs : -1
    const count = libc.epoll_wait(epoll, ptr(events.buffer), EVENTS, wait)
    now = performance.now()
    const told: [number, number][] = []
    for (let at = 0; at < count * EVENT_BYTES; at += EVENT_BYTES) {
      told.push([events.getUint32(at + DATA_AT, true), events.getUint32(at, true)])
    }
    for (const [key, flags] of told) {
      if (key === 0) goesOn = obey()
      const direction = directions.get(key)
      if (!direction) continue
      const [one, other] = direction.tunnel.directions
      const back = direction === one ? other : one
      if (!back) continue
      if ((flags & EPOLLERR) !== 0) end(direction.tunnel)
      if ((flags & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) !== 0) direction.isReadable = true
      if ((flags & (EPOLLOUT | EPOLLHUP)) !== 0) back.isWritable = true
      ready.add(direction).add(back)
    }
    for (const direction of [...ready]) move(direction)
    if (now - sweptAt >= sweepMs) {
      sweptAt = now
      sweep()
    }
  }
  for (const tunnel of [...tunnels.values()]) end(tunnel)
  for (const pipe of idlePipes) closePipe(pipe)
  libc.close(epoll)
  libc.close(commands)
  self.postMessage(0)
}
