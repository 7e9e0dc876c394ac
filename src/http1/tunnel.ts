import type { Duplex } from 'node:stream'
import { type ByteSource, createByteSource, write } from './byte-source.ts'

/** A tunnel or an exchange in which no byte moves for this long is cut. */
const IDLE_MS = 15 * 60_000

/** Destroys the streams when `moved` was not called for so long. */
export function watchIdle(ends: readonly Duplex[], idleMs = IDLE_MS): { moved(): void; stop(): void } {
  const timer = setTimeout(() => {
    for (const end of ends) end.destroy()
  }, idleMs)
  return { moved: () => void timer.refresh(), stop: () => clearTimeout(timer) }
}

/** Copies both ways until both directions have ended. When one stream breaks, both are destroyed. */
export async function tunnel(client: { socket: Duplex; source: ByteSource }, upstream: Duplex): Promise<void> {
  const idle = watchIdle([client.socket, upstream])
  const carry = async (from: ByteSource, to: Duplex) => {
    for (let piece = await from.read(); piece; piece = await from.read()) {
      idle.moved()
      await write(to, piece)
    }
    to.end()
  }
  client.socket.once('close', () => upstream.destroy())
  try {
    await Promise.all([carry(client.source, upstream), carry(createByteSource(upstream), client.socket)])
  } catch {
    client.socket.destroy()
    upstream.destroy()
  } finally {
    idle.stop()
  }
}
