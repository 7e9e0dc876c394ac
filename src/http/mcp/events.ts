import { isObject, type JsonObject, parseJson } from '../../read/json.ts'

/** No event of the API's own streams is longer. */
const MAX_CHARS = 16 * 1024 * 1024

/** The objects of a stream of server-sent events, up to its end. Leaving the loop ends what writes them. */
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
