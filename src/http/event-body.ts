import { DONE, HEARTBEAT, OPEN } from '../stream/frame.ts'
import { errorEvent } from './failure.ts'
import type { BodyWriter } from './written-body.ts'

/** How often a stream of events sends a heartbeat. */
export const HEARTBEAT_MS = 15_000
const encoder = new TextEncoder()

/** Makes the frame of a server-sent event. `id` is the position from which a reader can continue. */
export const frameOf = (event: object, id?: number): Uint8Array =>
  encoder.encode(`${idLine(id)}data: ${JSON.stringify(event)}\n\n`)

/** The line that gives an event its id; empty without one. */
export const idLine = (id: number | undefined): string => (id === undefined ? '' : `id: ${id}\n`)

/**
 * Writes the events of some work, then an error if it fails, then `[DONE]`. `failure` replaces the message of an error that
 * callers must not see.
 */
export async function writeEventBody(to: BodyWriter, failure: string, work: () => Promise<void>): Promise<void> {
  await to.room()
  to.write(OPEN)
  const beat = setInterval(() => {
    if (to.hasRoom) to.write(HEARTBEAT)
  }, HEARTBEAT_MS)
  try {
    await work()
  } catch (error) {
    to.write(frameOf(errorEvent(error, failure)))
  } finally {
    clearInterval(beat)
  }
  to.write(DONE)
}
