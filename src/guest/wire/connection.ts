import type { Socket } from 'bun'
import type { ChannelStream } from './channel.ts'

/**
 * A connection on a socket of Bun's, with the names of node:net where it does the same. With node:net and the streams that
 * it brings, a guest would take twice as long to start, and twice the memory, and each trip to it more of the server's time.
 */
export interface Connection extends ChannelStream {
  /** Resolves when the kernel has taken all that was written, or never will. */
  drained(): Promise<void>
  /** Ends both sides at once, as a connection that is refused. */
  reset(): void
  /** Ends this side after everything that was written. */
  end(): void
  /** Hands on the incoming pieces, each once the one before was taken, until the peer has ended. Rejects when `take` rejects. */
  readAll(take: (bytes: Buffer) => Promise<void>): Promise<void>
}

/** A listening socket that was passed as a descriptor, an address, or a path. */
export type ListenAt = { fd: number } | { hostname: string; port: number } | { unix: string }

type Handled = Socket<Opened | undefined>

/** Listens until the process ends. Throws where that is not possible. A peer that has ended its side is still written to. */
export function listen(at: ListenAt, accept: (connection: Connection, descriptor: number) => void): void {
  // The types of Bun have no descriptor to listen on; its own node:net gives one in this way.
  const place = ('unix' in at ? at : { hostname: '', port: 0, ...at }) as { hostname: string; port: number }
  Bun.listen<Opened | undefined>({
    ...place,
    allowHalfOpen: true,
    socket: {
      ...events,
      open(socket) {
        socket.data = open(socket, () => socket.end())
        accept(socket.data.connection, descriptorOf(socket))
      },
    },
  })
}

/** Connects to a socket in the file system. `destroy` ends both sides at once, whatever the peer does. Rejects where nobody listens. */
export async function dial(path: string): Promise<Connection> {
  const { promise, resolve } = Promise.withResolvers<Connection>()
  await Bun.connect<Opened | undefined>({
    unix: path,
    socket: {
      ...events,
      open(socket) {
        socket.data = open(socket, () => socket.terminate())
        resolve(socket.data.connection)
      },
    },
  })
  return await promise
}

const events = {
  data: ({ data }: Handled, bytes: Buffer) => data?.received(bytes),
  drain: ({ data }: Handled) => data?.mayWrite(),
  end: ({ data }: Handled) => data?.emit('end'),
  close: ({ data }: Handled) => data?.emit('close'),
  // The connection is closed as well.
  error() {},
}

/** Bun has this field, though its types do not. */
const descriptorOf = (socket: object): number => ('fd' in socket && typeof socket.fd === 'number' ? socket.fd : -1)

interface Opened {
  connection: Connection
  received(bytes: Buffer): void
  mayWrite(): void
  emit(event: 'end' | 'close'): void
}

function open(socket: Handled, destroy: () => void): Opened {
  const takers: ((bytes: Buffer) => void)[] = []
  /** The bytes that came before somebody took them. */
  const early: Buffer[] = []
  const endings = { end: [] as (() => void)[], close: [] as (() => void)[] }
  /** The bytes that the kernel has not taken yet. */
  let unsent: Uint8Array[] = []
  let unsentBytes = 0
  let drained: PromiseWithResolvers<void> | undefined
  let isEnding = false
  let isGone = false

  const send = (bytes: Uint8Array) => {
    const sent = unsentBytes > 0 ? 0 : Math.max(0, socket.write(bytes))
    if (sent === bytes.byteLength) return
    unsent.push(bytes.subarray(sent))
    unsentBytes += bytes.byteLength - sent
  }
  const settle = () => {
    if (unsentBytes > 0 && !isGone) return
    drained?.resolve()
    drained = undefined
    if (isEnding && !isGone) socket.shutdown()
  }

  const connection: Connection = {
    get writableLength() {
      return unsentBytes
    },
    on(event: 'data' | 'end' | 'close' | 'error', listener: (bytes: Buffer) => void) {
      if (event === 'data') {
        takers.push(listener)
        for (const bytes of early.splice(0)) listener(bytes)
      }
      // A failed connection is closed.
      else if (event !== 'error') endings[event].push(listener as () => void)
    },
    write(bytes) {
      if (!isGone && !isEnding) send(bytes)
    },
    async drained() {
      if (unsentBytes === 0 || isGone) return
      drained ??= Promise.withResolvers()
      await drained.promise
    },
    end() {
      if (isEnding) return
      isEnding = true
      settle()
    },
    destroy() {
      if (!isGone) destroy()
    },
    reset() {
      if (!isGone) socket.terminate()
    },
    async readAll(take) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      let taken = Promise.resolve()
      connection.on('data', bytes => {
        socket.pause()
        taken = taken.then(() => take(bytes)).then(() => void socket.resume())
        taken.catch(reject)
      })
      for (const event of ['end', 'close'] as const) connection.on(event, () => void taken.then(resolve, reject))
      await promise
    },
  }

  return {
    connection,
    received(bytes) {
      if (takers.length === 0) early.push(bytes)
      for (const take of takers) take(bytes)
    },
    mayWrite() {
      const waiting = unsent
      unsent = []
      unsentBytes = 0
      for (const bytes of waiting) send(bytes)
      settle()
    },
    emit(event) {
      if (event === 'close') {
        isGone = true
        settle()
      }
      for (const listener of endings[event]) listener()
    },
  }
}
