/** A stream's chunks. An abort ends them early: a sender that stands still holds nobody. The stream is cancelled then. */
export async function* chunksUntil(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = body.getReader()
  const cancel = () => void reader.cancel(signal.reason).catch(() => {})
  signal.addEventListener('abort', cancel, { once: true })
  try {
    if (signal.aborted) return
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
  } finally {
    signal.removeEventListener('abort', cancel)
    cancel()
  }
}
