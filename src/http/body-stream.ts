import type { Flow } from './flow.ts'

/** Writes a body to its sink. */
export interface BodySource {
  /** Writes the body. It is called once, and resolves at the body's end. */
  pull(sink: BodySink): Promise<void>
  /** Called when the reader has gone. */
  cancel(): void
}

export interface BodySink {
  /** Returns a promise when there is no more room; it resolves when there is. The piece's memory may be used again at once. */
  write(piece: Uint8Array): number | Promise<number>
}

/**
 * Makes a body's stream. A direct stream writes to the connection itself. A reader inside the server gets one that scripts can
 * read, because on a direct stream they see no end, and each read calls `pull` anew.
 */
export function bodyStream({ isInside }: Flow, source: BodySource): ReadableStream<Uint8Array> {
  if (isInside !== true) return new ReadableStream<Uint8Array>({ type: 'direct', ...source })
  let isOver = false
  let room: PromiseWithResolvers<number> | undefined
  const end = () => {
    isOver = true
    room?.resolve(0)
  }
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (piece: Uint8Array) => {
        if (isOver) return piece.byteLength
        // This copies: slicing a Buffer does not.
        controller.enqueue(new Uint8Array(piece))
        if ((controller.desiredSize ?? 1) > 0) return piece.byteLength
        room ??= Promise.withResolvers<number>()
        return room.promise
      }
      source.pull({ write }).then(
        () => {
          if (!isOver) controller.close()
          end()
        },
        error => {
          if (!isOver) controller.error(error)
          end()
        },
      )
    },
    pull() {
      room?.resolve(0)
      room = undefined
    },
    cancel() {
      end()
      source.cancel()
    },
  })
}
