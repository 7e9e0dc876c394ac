/** How many bytes wait for their reader before the process has to wait. */
const ROOM_BYTES = 16 * 1024 * 1024

/** A pipe: bytes are written at one end, and the other end is a stream of them. */
export interface Pipe {
  readonly stream: ReadableStream<Uint8Array>
  /** Resolves when there is room again. Bytes are dropped when the reader has gone. */
  write(bytes: Uint8Array): Promise<void> | undefined
  close(): void
  fail(error: unknown): void
}

export function createPipe(): Pipe {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let room = Promise.withResolvers<void>()
  const stream = new ReadableStream<Uint8Array>(
    {
      start(started) {
        controller = started
      },
      pull() {
        room.resolve()
      },
      cancel() {
        controller = undefined
        room.resolve()
      },
    },
    { highWaterMark: ROOM_BYTES, size: chunk => chunk?.byteLength ?? 0 },
  )
  const end = (act: (open: ReadableStreamDefaultController<Uint8Array>) => void) => {
    if (controller) act(controller)
    controller = undefined
    room.resolve()
  }
  return {
    stream,
    write(bytes) {
      controller?.enqueue(bytes)
      if ((controller?.desiredSize ?? 1) > 0) return undefined
      room = Promise.withResolvers()
      return room.promise
    },
    close: () => end(open => open.close()),
    fail: error => end(open => open.error(error)),
  }
}
