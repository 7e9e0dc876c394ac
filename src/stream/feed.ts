/** Bytes for one consumer, which takes them when it has room for them. No piece is made before it is taken. */
export interface Feed {
  /** The next piece; undefined when there is none now. Throws when the rest is lost. */
  take(): Uint8Array | undefined
  /** True when all was taken. */
  readonly isOver: boolean
  /** Calls `wake` once, when there is a piece or the feed is over. It must not throw. */
  wait(wake: () => void): void
  /** To be called when the consumer takes no more. Idempotent. */
  leave(): void
}

/** A feed as a stream. Cancelling the stream leaves the feed. */
export function streamOf(feed: Feed): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          for (;;) {
            const piece = feed.take()
            if (piece) return controller.enqueue(piece)
            if (feed.isOver) return controller.close()
            await new Promise<void>(resolve => feed.wait(resolve))
          }
        } catch (error) {
          feed.leave()
          throw error
        }
      },
      cancel: () => feed.leave(),
    },
    { highWaterMark: 0 },
  )
}
