import { createServer, type Server, type Socket } from 'node:net'
import type { Descriptor } from '../../../src/descriptor.ts'
import { MAX_PROXY_CALLS } from '../../../src/guest/wire/requests.ts'
import { duplicate } from '../host/network-namespace.ts'

/** Connections that are taken in one turn of the event loop: Bun accepts for as long as programs connect. */
const MAX_PER_TURN = 64
const PAUSE_MS = 5
/** How long to wait before listening again, when there was no free descriptor. */
const RETRY_MS = 100

/**
 * Takes what programs inside connect to a listening socket; `refuse` ends a connection that is one too many. Closing it closes the
 * socket, and the signal then cuts what was taken.
 */
export function acceptFrom(
  listening: Descriptor,
  onConnection: (socket: Socket, signal: AbortSignal) => void,
  refuse: (socket: Socket) => void,
): { close(): void } {
  const ending = new AbortController()
  const sockets = new Set<Socket>()
  let server: Server
  let pause: Timer | undefined

  const take = (socket: Socket): 'taken' | 'refused' => {
    socket.on('error', () => socket.destroy())
    if (sockets.size >= MAX_PROXY_CALLS) {
      refuse(socket)
      return 'refused'
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.setNoDelay(true)
    onConnection(socket, ending.signal)
    return 'taken'
  }

  const open = () => {
    let taken = 0
    const current = createServer({ allowHalfOpen: true }, socket => {
      if (taken === 0) setImmediate(() => (taken = 0))
      // A program that connects again as soon as it is refused would keep the server busy.
      if (take(socket) === 'taken' && ++taken < MAX_PER_TURN) return
      current.close()
      openIn(PAUSE_MS)
    })
    const number = duplicate(listening)
    current.on('error', () => openIn(RETRY_MS))
    current.listen({ fd: number })
    server = current
  }
  /** New connections wait meanwhile at the socket, which stays open. */
  const openIn = (ms: number) => {
    clearTimeout(pause)
    pause = setTimeout(() => {
      try {
        open()
      } catch {
        openIn(RETRY_MS)
      }
    }, ms)
  }
  open()

  return {
    close() {
      clearTimeout(pause)
      server.close()
      listening.close()
      ending.abort()
      for (const socket of [...sockets]) socket.destroy()
    },
  }
}
