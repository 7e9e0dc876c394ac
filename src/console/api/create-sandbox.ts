import { RequestError, refusalOf } from './client.ts'

/** The classes of isolation, weakest first. */
export const isolations = ['namespaces', 'container', 'gvisor', 'microvm'] as const
export type Isolation = (typeof isolations)[number]

/** What the server says while it makes a sandbox. */
export type CreateStep =
  | { type: 'stage'; stage: 'environment' | 'archive' | 'files' | 'setup'; number?: number; of?: number }
  | { type: 'progress'; message: string; doneBytes?: number; totalBytes?: number }
  | { type: 'stdout' | 'stderr'; data: string }

type Event = CreateStep | { type: 'ready'; sandbox: { id: string } } | { type: 'error'; code: string; message: string }

/** Makes a sandbox. Resolves to its id; throws a RequestError in the server's words. An abort ends the create. */
export async function createSandbox(
  asked: { agent: string; isolation?: Isolation },
  onStep: (step: CreateStep) => void,
  signal: AbortSignal,
): Promise<string> {
  const response = await fetch('/v1/sandboxes', {
    method: 'POST',
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify(asked),
    signal,
  })
  if (!response.ok) throw await refusalOf(response)
  for await (const event of eventsOf(response)) {
    if (event.type === 'ready') return event.sandbox.id
    if (event.type === 'error') throw new RequestError(event.message, response.status, event.code)
    onStep(event)
  }
  throw new RequestError('The connection broke before the sandbox was made.', response.status, 'unknown')
}

/** The events of an answer, one line each. */
async function* eventsOf({ body }: Response): AsyncGenerator<Event> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  while (reader) {
    const { value, done } = await reader.read()
    if (done) return
    const lines = (rest + value).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line.startsWith('data: {')) yield JSON.parse(line.slice('data: '.length)) as Event
    }
  }
}
