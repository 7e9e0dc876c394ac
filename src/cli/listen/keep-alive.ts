import { openListeningSockets } from './listening-sockets.ts'

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

/**
 * Ends connections within two minutes when the machine at the other end is gone. Bun has no setting for this, so it is set on the
 * listening sockets, from which accepted ones inherit it. Returns false when /proc shows no listening socket.
 */
export function keepConnectionsAlive(port: number): boolean {
  using sockets = openListeningSockets()
  const settings = [
    [SOL_SOCKET, SO_KEEPALIVE, 1],
    [IPPROTO_TCP, TCP_KEEPIDLE, IDLE_SECONDS],
    [IPPROTO_TCP, TCP_KEEPINTVL, EVERY_SECONDS],
    [IPPROTO_TCP, TCP_KEEPCNT, TIMES],
    [IPPROTO_TCP, TCP_USER_TIMEOUT, UNSENT_MS],
  ] as const
  const found = sockets.find(port)
  return (
    found.length > 0 &&
    found.every(socket => settings.every(([level, name, value]) => sockets.setOption(socket, level, name, value)))
  )
}
