/** One of a command's outputs, from the connection to its reader. */
export interface OutputStream {
  readonly readable: ReadableStream<Uint8Array>
  /** Resolves when there is room for more, or the reader has gone. */
  write(bytes: Uint8Array): Promise<void>
  end(): void
  fail(error: unknown): void
}

/** Both outputs share one connection: when this much of one waits for its reader, the other must wait too. */
const HELD_BYTES = 1024 * 1024

export function createOutputStream(): OutputStream {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let isOver = false
  let isWanted = Promise.withResolvers<void>()
  const readable = new ReadableStream<Uint8Array>(
    {
      start: given => {
        controller = given
      },
      pull: () => isWanted.resolve(),
      cancel() {
        isOver = true
        isWanted.resolve()
      },
    },
    { highWaterMark: HELD_BYTES, size: bytes => bytes?.byteLength ?? 0 },
  )

  return {
    readable,
    async write(bytes) {
      if (isOver || bytes.byteLength === 0) return
      controller?.enqueue(bytes)
      if ((controller?.desiredSize ?? 1) > 0) return
      isWanted = Promise.withResolvers()
      await isWanted.promise
    },
    end() {
      if (!isOver) controller?.close()
      isOver = true
    },
    fail(error) {
      if (!isOver) controller?.error(error)
      isOver = true
      isWanted.resolve()
    },
  }
}
