/** All of a stream; undefined when that is more than `maxBytes`: then the stream is cancelled. */
export async function readBytes(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let byteLength = 0
  // Leaving the loop cancels the stream.
  for await (const chunk of stream ?? []) {
    byteLength += chunk.byteLength
    if (byteLength > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** A request's whole body; undefined when it is, or says that it is, more than `maxBytes`. */
export async function readBody(request: Request, maxBytes: number): Promise<Buffer | undefined> {
  const isTooLong = Number(request.headers.get('content-length') ?? 0) > maxBytes
  return isTooLong ? undefined : await readBytes(request.body, maxBytes)
}
