import { EVERY_MS, gather, measureWindow, startSlowReply } from '../audience.ts'
import type { Round } from '../part.ts'
import type { BenchServer } from '../server.ts'
import { transfer } from '../transfer.ts'

/** The reply has to outlast the joining of all readers, on a busy machine too; it is cancelled after the last event that counts. */
const JOIN_MS = 120_000
const ARRIVE_MS = 30_000
const LOOK_MS = 20
/** The bytes that HTTP's chunked encoding adds to an event of less than 256 bytes. */
const CHUNK_BYTES = 6

/** Measures the CPU time of a process that sends each event to many readers, in µs for each event and reader. */
export async function fanOut(
  { sizes, peer, record, signal }: Round,
  server: BenchServer,
  sandboxId: string,
): Promise<void> {
  const { readers, events } = sizes
  const reply = await startSlowReply(server, sandboxId, events + JOIN_MS / EVERY_MS)
  const path = `/v1/chat/echo/${sandboxId}/stream?threadId=${reply.threadId}`
  const audience = await gather(readers, onPiece => server.transfer(path, { onPiece }))
  const ours = await measureWindow(server.pid, audience, () => Bun.sleep(events * EVERY_MS))
  await server.ask('DELETE', path)
  await audience.left()

  const bytes = Math.round(ours.eventBytes) - CHUNK_BYTES
  const count = Math.round(ours.events / readers)
  const bareAudience = await gather(readers, onPiece => transfer(`${peer.url}/events`, { onPiece }))
  const bare = await measureWindow(peer.pid, bareAudience, async () => {
    const before = bareAudience.bytes()
    await fetch(`${peer.url}/send?count=${count}&everyMs=${EVERY_MS}&bytes=${bytes}`)
    await arrival(() => bareAudience.bytes() - before >= count * readers * bytes, signal)
  })
  await fetch(`${peer.url}/end`)
  await bareAudience.left()
  record('fan-out', [(ours.cpuSeconds * 1e6) / ours.events], [(bare.cpuSeconds * 1e6) / (count * readers)])
}

async function arrival(hasArrived: () => boolean, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now()
  while (!hasArrived()) {
    signal.throwIfAborted()
    if (performance.now() - startedAt > ARRIVE_MS) throw new Error('not all events of the bare server came')
    await Bun.sleep(LOOK_MS)
  }
}
