import type { Duplex } from 'node:stream'
import { type ByteSource, write } from './byte-source.ts'

/** A tunnel or an exchange in which no byte moves for this long is cut. */
const IDLE_MS = 15 * 60_000

/** Destroys the streams when `moved` was not called for so long. */
export function watchIdle(ends: readonly Duplex[], idleMs = IDLE_MS): { moved(): void; stop(): void } {
  const timer = setTimeout(() => {
    for (const end of ends) end.destroy()
  }, idleMs)
  return { moved: () => void timer.refresh(), stop: () => clearTimeout(timer) }
}

/** One end of a tunnel. */
export interface TunnelEnd {
  socket: Duplex
  source: ByteSource
}

/** Sends the bytes that were read ahead, in both directions. Returns true when none of them is left in this process. */
export function passAhead(client: TunnelEnd, upstream: TunnelEnd): boolean {
  const pass = ({ source }: TunnelEnd, { socket: to }: TunnelEnd) => {
    const bytes = source.takeAhead()
    if (bytes) to.write(bytes)
    return to.writableLength === 0
  }
  const passed = [pass(client, upstream), pass(upstream, client)]
  return passed.every(Boolean)
}

/** Copies both ways until both directions have ended. When one stream breaks, both are destroyed. */
export async function tunnel(client: TunnelEnd, upstream: TunnelEnd): Promise<void> {
  const idle = watchIdle([client.socket, upstream.socket])
  const carry = async (from: ByteSource, to: Duplex) => {
    for (let piece = await from.read(); piece; piece = await from.read()) {
      idle.moved()
      await write(to, piece)
    }
    to.end()
  }
  client.socket.once('close', () => upstream.socket.destroy())
  try {
    await Promise.all([carry(client.source, upstream.socket), carry(upstream.source, client.socket)])
  } catch {
    client.socket.destroy()
    upstream.socket.destroy()
  } finally {
    idle.stop()
  }
}
