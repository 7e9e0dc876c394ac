import type { Flow } from './flow.ts'

/** Writes a body to where it goes. */
export interface BodySource {
  /** Called once. Resolves at the body's end. */
  pull(sink: BodySink): Promise<void>
  /** The reader has gone. */
  cancel(): void
}

export interface BodySink {
  /** A promise when there is no room for more: it resolves when there is. The piece's memory may be used again at once. */
  write(piece: Uint8Array): number | Promise<number>
}

/**
 * The stream of a body: one that writes to the connection itself, or, for a reader inside the server, one that scripts can
 * read. Of a direct stream they see no end, and each read calls `pull` anew.
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
        // A copy: the slice of a Buffer is none.
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
