import { DONE, eventStreamHeaders, HEARTBEAT, OPEN } from '../stream/frame.ts'
import { frameOf, HEARTBEAT_MS } from './event-body.ts'
import { errorEvent } from './failure.ts'

/** Takes the events of some work. */
export interface EventSink {
  /** Begins the answer. */
  open(): Promise<void>
  /** Begins the answer if it has not begun. Resolves when the reader has room for more, and rejects when the reader has gone. */
  send(event: object): Promise<void>
  /** False until the reader has taken what was sent before. */
  readonly hasRoom: boolean
}

/** Whether the client asks for events in place of one JSON answer. */
export const wantsEvents = ({ headers }: Request): boolean =>
  headers.get('accept')?.includes('text/event-stream') ?? false

/**
 * Answers with the events of some work as it goes on, then with an error if it fails, then with `[DONE]`. Rejects when the work
 * fails before the answer has begun. When the client goes away, the work is aborted. `failure` replaces the message of an error
 * that callers must not see.
 */
export async function answerWithEvents(
  work: (sink: EventSink, signal: AbortSignal) => Promise<void>,
  { failure, signal: gone }: { failure: string; signal: AbortSignal },
): Promise<Response> {
  const abort = new AbortController()
  const leave = () => abort.abort(new Error('the client went away'))
  if (gone.aborted) leave()
  gone.addEventListener('abort', leave, { once: true })
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  writer.closed.catch(leave)
  const begun = Promise.withResolvers<void>()
  let isOpen = false
  const hasRoom = () => (writer.desiredSize ?? 0) > 0
  const beat = setInterval(() => {
    if (isOpen && hasRoom()) writer.write(HEARTBEAT).catch(() => {})
  }, HEARTBEAT_MS)

  const open = async () => {
    if (isOpen) return
    isOpen = true
    begun.resolve()
    await writer.write(OPEN)
  }
  const send = async (event: object) => {
    // Nothing is awaited in between, so events keep their order.
    const opened = open()
    await Promise.all([opened, writer.write(frameOf(event))])
  }
  const carryOn = async () => {
    try {
      await work(
        {
          open,
          send,
          get hasRoom() {
            return hasRoom()
          },
        },
        abort.signal,
      )
    } catch (error) {
      if (!isOpen) throw error
      await send(errorEvent(error, failure))
    } finally {
      clearInterval(beat)
      gone.removeEventListener('abort', leave)
    }
    await writer.write(DONE)
    await writer.close()
  }
  // After the beginning, a write fails only when the client has gone, and nobody reads the rest.
  carryOn().catch(begun.reject)
  await begun.promise
  return new Response(readable, { headers: eventStreamHeaders })
}
