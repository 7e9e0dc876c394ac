export interface ServerSentEvent {
  id?: string
  /** Its parsed JSON, or `[DONE]`. */
  data: any
}

/** A response's events as they come. Leaving the loop closes the connection. */
export async function* eventsOf(response: Response): AsyncGenerator<ServerSentEvent> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    rest += decoder.decode(bytes, { stream: true })
    const blocks = rest.split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      if (block.startsWith(':')) continue
      const [, id, data = ''] = /^(?:id: (.*)\n)?data: (.*)$/s.exec(block) ?? []
      if (!data) throw new Error(`not an event: ${block}`)
      yield { ...(id && { id }), data: data === '[DONE]' ? data : JSON.parse(data) }
    }
  }
  if (rest) throw new Error(`half an event: ${rest}`)
}

/** Every event up to the end. Throws when the end is not [DONE]. */
export async function readEvents(response: Response): Promise<ServerSentEvent[]> {
  const events = await Array.fromAsync(eventsOf(response))
  if (events.pop()?.data !== '[DONE]') throw new Error(`no [DONE]: ${response.status} ${JSON.stringify(events)}`)
  return events
}

/** What the events say, up to the end. */
export const readChunks = async (response: Response): Promise<any[]> =>
  (await readEvents(response)).map(({ data }) => data)

/** What the text deltas say together. */
export const textIn = (chunks: readonly any[]): string =>
  chunks.map(chunk => (chunk.type === 'text-delta' ? chunk.delta : '')).join('')

export const typesIn = (chunks: readonly any[]): string[] => chunks.map(({ type }) => type)
