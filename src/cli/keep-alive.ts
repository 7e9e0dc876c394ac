import { dlopen, FFIType, ptr } from 'bun:ffi'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Constants of Linux's headers. */
const SOL_SOCKET = 1
const SO_KEEPALIVE = 9
const IPPROTO_TCP = 6
const TCP_KEEPIDLE = 4
const TCP_KEEPINTVL = 5
const TCP_KEEPCNT = 6
const TCP_USER_TIMEOUT = 18

const IDLE_SECONDS = 60
const EVERY_SECONDS = 15
const TIMES = 4
/** A connection ends when sent bytes stay unacknowledged for this long; Linux's default is a quarter of an hour. */
const UNSENT_MS = (IDLE_SECONDS + TIMES * EVERY_SECONDS) * 1000

const LISTENING = '0A'

/**
 * Ends connections within two minutes when the machine at the other end is gone. Bun has no setting for this, so it is set
 * on the listening socket, from which accepted ones inherit it. False when that socket cannot be found.
 */
export function keepConnectionsAlive(port: number): boolean {
  const socket = findListeningSocket(port)
  if (socket === undefined) return false
  const { i32, u32, pointer } = FFIType
  const { symbols, close } = dlopen('libc.so.6', {
    setsockopt: { args: [i32, i32, i32, pointer, u32], returns: i32 },
  })
  const settings = [
    [SOL_SOCKET, SO_KEEPALIVE, 1],
    [IPPROTO_TCP, TCP_KEEPIDLE, IDLE_SECONDS],
    [IPPROTO_TCP, TCP_KEEPINTVL, EVERY_SECONDS],
    [IPPROTO_TCP, TCP_KEEPCNT, TIMES],
    [IPPROTO_TCP, TCP_USER_TIMEOUT, UNSENT_MS],
  ] as const
  const failed = settings.filter(([level, name, value]) => {
    const option = Int32Array.of(value)
    return symbols.setsockopt(socket, level, name, ptr(option), option.byteLength) !== 0
  })
  close()
  return failed.length === 0
}

/** The descriptor of this process's socket that listens on the port. Undefined also when /proc is hidden. */
function findListeningSocket(port: number): number | undefined {
  const place = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const inodes = ['tcp', 'tcp6'].flatMap(table =>
    readTable(`/proc/self/net/${table}`)
      .split('\n')
      .map(line => line.trim().split(' ').filter(Boolean))
      .filter(([, local = '', , state]) => local.endsWith(place) && state === LISTENING)
      .map(row => `socket:[${row[9]}]`),
  )
  const found = readdirSync('/proc/self/fd').find(name => {
    try {
      return inodes.includes(readlinkSync(`/proc/self/fd/${name}`))
    } catch {
      // The descriptor of the directory listing is closed by now.
      return false
    }
  })
  return found === undefined ? undefined : Number(found)
}

function readTable(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The kernel lacks this address family.
    return ''
  }
}
