import { dlopen, FFIType, ptr } from 'bun:ffi'
import { closeSync, openSync, readdirSync } from 'node:fs'

/** Constants of Linux's headers. */
const SOL_SOCKET = 1
const SO_REUSEPORT = 15
const SO_ACCEPTCONN = 30
const SO_ATTACH_REUSEPORT_CBPF = 51
const BPF_RET = 0x06
const AF_INET = 2
const AF_INET6 = 10
const SHUT_RDWR = 2
/** The size of the longest socket address. */
const ADDRESS_BYTES = 128

const { i32, u32, pointer } = FFIType
const openLibrary = () =>
  dlopen('libc.so.6', {
    setsockopt: { args: [i32, i32, i32, pointer, u32], returns: i32 },
    getsockopt: { args: [i32, i32, i32, pointer, pointer], returns: i32 },
    getsockname: { args: [i32, pointer, pointer], returns: i32 },
    getpeername: { args: [i32, pointer, pointer], returns: i32 },
    shutdown: { args: [i32, i32], returns: i32 },
    dup2: { args: [i32, i32], returns: i32 },
  })

/** A connection that somebody has made to this process. */
export interface Connection {
  descriptor: number
  /** The address of the other end. An IPv4 address is never written within IPv6. */
  address: string
  port: number
}

/** Operations on this process's sockets for which Bun has no calls. */
export interface ListeningSockets extends Disposable {
  /** The descriptors that listen on a port. Empty when /proc is hidden. */
  find(port: number): number[]
  /** Returns false when Linux refuses. */
  setOption(socket: number, level: number, name: number, value: number): boolean
  /** Lets another socket of this user listen on the same port. Returns false when Linux refuses. */
  share(socket: number): boolean
  /**
   * Sends each new connection of a port to the younger of two sockets that share it; handshakes end at the socket where they
   * began.
   */
  preferYounger(socket: number): boolean
  /** Lists the connections to a port. */
  connections(port: number): Connection[]
  /** Ends a connection in both directions; its reader sees the end. */
  shutDown(connection: Connection): void
  /** Ends listening. The descriptor stays open on /dev/null, because Bun closes it later. */
  end(socket: number): void
}

export function openListeningSockets(): ListeningSockets {
  const { symbols, close } = openLibrary()
  const setOption = (socket: number, level: number, name: number, value: number) => {
    const option = Int32Array.of(value)
    return symbols.setsockopt(socket, level, name, ptr(option), option.byteLength) === 0
  }
  const nameOf = (fd: number, call: typeof symbols.getsockname) => {
    const name = new DataView(new ArrayBuffer(ADDRESS_BYTES))
    const bytes = Uint32Array.of(ADDRESS_BYTES)
    return call(fd, ptr(name.buffer), ptr(bytes)) === 0 ? readName(name) : undefined
  }
  const isListeningOn = (fd: number, port: number) => {
    const flag = new Int32Array(1)
    const flagBytes = Uint32Array.of(flag.byteLength)
    if (symbols.getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, ptr(flag), ptr(flagBytes)) !== 0 || flag[0] !== 1)
      return false
    return nameOf(fd, symbols.getsockname)?.port === port
  }
  return {
    // /proc/net/tcp is not used, because Linux searches its whole table of connections for it, which takes tens of milliseconds.
    find: port => descriptors().filter(fd => isListeningOn(fd, port)),
    setOption,
    share: socket => setOption(socket, SOL_SOCKET, SO_REUSEPORT, 1),
    preferYounger(socket) {
      // This program has one instruction, `return 1`: the index of the second socket in the group. Once alone in it, a socket
      // gets all connections.
      const instruction = new DataView(new ArrayBuffer(8))
      instruction.setUint16(0, BPF_RET, true)
      instruction.setUint32(4, 1, true)
      const program = new DataView(new ArrayBuffer(16))
      program.setUint16(0, 1, true)
      program.setBigUint64(8, BigInt(ptr(instruction.buffer)), true)
      const { byteLength } = program
      return symbols.setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, ptr(program.buffer), byteLength) === 0
    },
    connections: port =>
      descriptors().flatMap(descriptor => {
        if (nameOf(descriptor, symbols.getsockname)?.port !== port) return []
        const other = nameOf(descriptor, symbols.getpeername)
        return other ? [{ descriptor, ...other }] : []
      }),
    shutDown: ({ descriptor }) => void symbols.shutdown(descriptor, SHUT_RDWR),
    end(socket) {
      const nothing = openSync('/dev/null', 'r')
      symbols.dup2(nothing, socket)
      closeSync(nothing)
    },
    [Symbol.dispose]: close,
  }
}

/** Reads a `sockaddr_in` or `sockaddr_in6`; undefined for other families. */
function readName(name: DataView): { address: string; port: number } | undefined {
  const family = name.getUint16(0, true)
  const port = name.getUint16(2)
  const dotted = (at: number) => [0, 1, 2, 3].map(index => name.getUint8(at + index)).join('.')
  if (family === AF_INET) return { address: dotted(4), port }
  if (family !== AF_INET6) return undefined
  const groups = Array.from({ length: 8 }, (_, index) => name.getUint16(8 + 2 * index).toString(16))
  const isMapped = groups.slice(0, 6).join() === '0,0,0,0,0,ffff'
  return { address: isMapped ? dotted(20) : groups.join(':'), port }
}

/** The open descriptors of this process; empty when /proc is hidden. */
export function descriptors(): number[] {
  try {
    return readdirSync('/proc/self/fd').map(Number)
  } catch {
    return []
  }
}
