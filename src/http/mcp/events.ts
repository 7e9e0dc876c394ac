import { isObject, type JsonObject, parseJson } from '../../read/json.ts'

/** The longest event; the API's own streams have no longer ones. */
const MAX_CHARS = 16 * 1024 * 1024

/** Yields the objects of a stream of server-sent events up to its end. Leaving the loop cancels the stream. */
export async function* eventsOf(response: Response): AsyncGenerator<JsonObject, void> {
  const decoder = new TextDecoder()
  let pieces: string[] = []
  let length = 0
  for await (const bytes of response.body ?? []) {
    const text = decoder.decode(bytes, { stream: true })
    pieces.push(text)
    length += text.length
    if (length > MAX_CHARS) throw new Error('an event of a stream is too long')
    if (!text.includes('\n')) continue
    const lines = pieces.join('').split('\n')
    const rest = lines.pop() ?? ''
    pieces = [rest]
    length = rest.length
    for (const line of lines) {
      const event = line.startsWith('data: ') ? parseJson(line.slice('data: '.length)) : undefined
      if (isObject(event)) yield event
    }
  }
}
