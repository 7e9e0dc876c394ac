/** One of a command's outputs, from the wire to who reads it. */
export interface Lane {
  readonly readable: ReadableStream<Uint8Array>
  /** Resolves when there is room for more. */
  write(bytes: Uint8Array): Promise<void>
  end(): void
  fail(error: unknown): void
}

/** Both outputs come by one connection: this much of one waits for its reader before the other has to wait too. */
const HELD_BYTES = 1024 * 1024

export function createLane(): Lane {
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
