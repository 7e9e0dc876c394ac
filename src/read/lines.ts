/** The longest line that is given unless a caller says otherwise. */
const MAX_LINE_CHARS = 16 * 1024 * 1024

/** The lines of a stream of UTF-8, in linear time. Ends early at a line that is longer than `maxChars`; drops one without an end. */
export async function* lines(
  stream: AsyncIterable<Uint8Array>,
  maxChars = MAX_LINE_CHARS,
): AsyncGenerator<string, void> {
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
    if (chars > maxChars) return
  }
}
