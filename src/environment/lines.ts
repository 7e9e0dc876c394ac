const MAX_LINE_CHARS = 16 * 1024 * 1024

/** The lines of a stream of UTF-8. Ends early at a line that is longer than 16 M characters. */
export async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let pieces: string[] = []
  let chars = 0
  for await (const chunk of stream) {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n')
    pieces.push(first)
    chars += first.length
    for (const next of others) {
      yield pieces.join('')
      pieces = [next]
      chars = next.length
    }
    if (chars > MAX_LINE_CHARS) return
  }
}
