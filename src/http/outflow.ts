import { type Flow, watchStalls } from './flow.ts'

/**
 * Passes a body on at its reader's pace, and lets other work have its turn between two pieces. `isOpenEnded` says that the body
 * may be cut anywhere, because its reader does not take a part for the whole.
 */
export function outflow(
  body: ReadableStream<Uint8Array>,
  flow: Flow,
  { isOpenEnded = false } = {},
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const stalls = watchStalls(flow)
  let bytesBefore: number | undefined
  let isOver = false
  const end = () => {
    if (isOver) return
    isOver = true
    stalls.end()
    flow.onEnd()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const cut = () => {
          if (isOver) return
          end()
          if (isOpenEnded) controller.close()
          else controller.error(new Error('the caller may read no more'))
          void reader.cancel().catch(() => {})
        }
        flow.signal.addEventListener('abort', cut, { once: true })
      },
      async pull(controller) {
        stalls.taken()
        try {
          if (bytesBefore !== undefined) await flow.turn(bytesBefore)
          const { value, done } = await reader.read()
          if (isOver) return
          stalls.given()
          if (!done) {
            bytesBefore = value.byteLength
            return controller.enqueue(value)
          }
          end()
          controller.close()
        } catch (error) {
          end()
          throw error
        }
      },
      async cancel(reason) {
        end()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
