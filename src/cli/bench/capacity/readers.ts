import { EVERY_MS, gather, measureWindow, startSlowReply } from '../audience.ts'
import type { Place } from '../place.ts'
import { rssOf } from '../process-figures.ts'
import type { Measured } from './rows.ts'
import type { CapacitySizes } from './sizes.ts'

/** The reply has to outlast the joining of all readers, on a busy machine too. */
const JOIN_MS = 120_000

/** Measures what the readers of a reply cost the server. */
export async function measureReaders(
  place: Place,
  { readers, events }: CapacitySizes,
  measured: Measured,
): Promise<void> {
  await using server = await place.serve([], { spares: 0, isUnlimited: true })
  const { id } = await server.create()
  const { threadId } = await startSlowReply(server, id, events + JOIN_MS / EVERY_MS)
  const path = `/v1/chat/echo/${id}/stream?threadId=${threadId}`
  const before = rssOf(server.pid)
  const audience = await gather(readers, onPiece => server.transfer(path, { onPiece }))
  const window = await measureWindow(server.pid, audience, () => Bun.sleep(events * EVERY_MS))
  const n = Math.round(window.events)
  measured['reader-cpu'] = { value: (window.cpuSeconds * 1e6) / window.events, n }
  const memoryKb = ((rssOf(server.pid) - before) * 1024) / readers
  // The memory of a few readers is less than a server's memory varies by itself.
  if (memoryKb > 0) measured['reader-memory'] = { value: memoryKb, n: readers }
  await server.ask('DELETE', path)
  await audience.left()
}
