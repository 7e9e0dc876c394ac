import { dlopen, FFIType, ptr } from 'bun:ffi'

/** Sends the server's state to systemd, when systemd has started it. */
export interface ServiceManager {
  ready(): void
  stopping(): void
  /** Call it often; systemd gets a message only as often as it needs one. */
  alive(): void
}

const [AF_UNIX, SOCK_DGRAM, SOCK_CLOEXEC, MSG_DONTWAIT] = [1, 2, 0x80000, 0x40]

/**
 * Uses the variables of sd_notify(3) and removes them from the environment, so that no child process gets them. Does
 * nothing when systemd expects no messages.
 */
export function createServiceManager(environment: NodeJS.ProcessEnv): ServiceManager {
  const { NOTIFY_SOCKET: path, WATCHDOG_USEC: limit } = environment
  delete environment.NOTIFY_SOCKET
  delete environment.WATCHDOG_USEC
  delete environment.WATCHDOG_PID
  if (!path) return { ready: () => {}, stopping: () => {}, alive: () => {} }
  const send = senderTo(path)
  const everyMs = limit === undefined ? Number.POSITIVE_INFINITY : Number(limit) / 1000 / 3
  let toldAt = Number.NEGATIVE_INFINITY
  return {
    ready: () => send('READY=1'),
    stopping: () => send('STOPPING=1'),
    alive() {
      const now = performance.now()
      if (now - toldAt < everyMs) return
      toldAt = now
      if (limit !== undefined) send('WATCHDOG=1')
    },
  }
}

/** Sends a Unix datagram by libc, because Bun has no API for it. */
function senderTo(path: string): (text: string) => void {
  const { symbols } = dlopen('libc.so.6', {
    socket: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
    sendto: {
      args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32, FFIType.ptr, FFIType.u32],
      returns: FFIType.i64,
    },
  })
  const fd = symbols.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  // An abstract name begins with a zero, which systemd writes as @.
  const name = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : path)
  const address = Buffer.concat([Buffer.of(AF_UNIX, 0), name])
  return text => {
    const bytes = Buffer.from(text)
    symbols.sendto(fd, ptr(bytes), bytes.byteLength, MSG_DONTWAIT, ptr(address), address.byteLength)
  }
}
