import { HEARTBEAT, OPEN } from '../../stream/frame.ts'
import { frameOf, HEARTBEAT_MS } from '../event-body.ts'
import type { BodyWriter } from '../written-body.ts'
import type { Send } from './progress.ts'

/** Writes the messages of some work as server-sent events; the last one is the answer. Rejects when the work does. */
export async function writeMessages(to: BodyWriter, work: (send: Send) => Promise<object>): Promise<void> {
  await to.room()
  to.write(OPEN)
  const beat = setInterval(() => {
    if (to.hasRoom) to.write(HEARTBEAT)
  }, HEARTBEAT_MS)
  try {
    const answer = await work(message => {
      // A slow reader gets fewer progress messages.
      if (to.hasRoom) to.write(frameOf(message))
    })
    await to.room()
    to.write(frameOf(answer))
  } finally {
    clearInterval(beat)
  }
}
