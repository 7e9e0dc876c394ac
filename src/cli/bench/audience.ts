import { cpuSeconds } from './process-figures.ts'
import type { BenchServer } from './server.ts'

/** The time between two words of the agent echo's `/slow N`. */
export const EVERY_MS = 50
const SETTLE_MS = 300

/** Starts a reply of this many words, which goes on without a reader. */
export async function startSlowReply(
  server: BenchServer,
  sandboxId: string,
  words: number,
): Promise<{ threadId: string }> {
  const messages = [{ role: 'user', parts: [{ type: 'text', text: `/slow ${words}` }] }]
  return await server.ask('POST', '/v1/chat/echo', { sandboxId, mode: 'background', messages })
}

/** Readers of one stream. */
export interface Audience {
  /** How many bytes all readers have got so far. */
  bytes(): number
  /** What one of the readers has got so far. */
  one(): { bytes: number; events: number }
  left(): Promise<unknown>
}

/** Opens this many connections. Resolves when each has had its first piece, and everything that was sent before has been read. */
export async function gather(
  readers: number,
  open: (onPiece: (piece: Uint8Array) => void) => Promise<unknown>,
): Promise<Audience> {
  let bytes = 0
  const one = { bytes: 0, events: 0 }
  const decoder = new TextDecoder()
  const arrived: Promise<void>[] = []
  const ends: Promise<unknown>[] = []
  for (let index = 0; index < readers; index++) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    arrived.push(promise)
    const end = open(piece => {
      bytes += piece.byteLength
      if (index === 0) {
        one.bytes += piece.byteLength
        one.events += decoder.decode(piece, { stream: true }).split('"text-delta"').length - 1
      }
      resolve()
    })
    end.catch(reject)
    ends.push(end)
  }
  await Promise.all(arrived)
  await Bun.sleep(SETTLE_MS)
  return { bytes: () => bytes, one: () => ({ ...one }), left: () => Promise.all(ends) }
}

/** Measures the CPU time of a process during the work, and how many events came, for all readers together. */
export async function measureWindow(pid: number, audience: Audience, work: () => Promise<unknown>) {
  const before = { cpu: cpuSeconds(pid), bytes: audience.bytes(), one: audience.one() }
  await work()
  const spent = cpuSeconds(pid) - before.cpu
  const one = audience.one()
  const eventBytes = (one.bytes - before.one.bytes) / (one.events - before.one.events)
  return { cpuSeconds: spent, eventBytes, events: (audience.bytes() - before.bytes) / eventBytes }
}
