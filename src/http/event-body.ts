import { DONE, HEARTBEAT, OPEN } from '../stream/frame.ts'
import { errorEvent } from './failure.ts'
import type { BodyWriter } from './written-body.ts'

/** How often a stream of events says that it is alive. */
export const HEARTBEAT_MS = 15_000
const encoder = new TextEncoder()

/** A server-sent event. `id` is what a reader continues from. */
export const frameOf = (event: object, id?: number): Uint8Array =>
  encoder.encode(`${idLine(id)}data: ${JSON.stringify(event)}\n\n`)

/** The line that gives an event its id; empty without one. */
export const idLine = (id: number | undefined): string => (id === undefined ? '' : `id: ${id}\n`)

/** Writes the events of work, then an error if it fails, then `[DONE]`. `failure` stands for an error that is not for callers. */
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
