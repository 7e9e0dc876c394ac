import type { UIMessageChunk } from 'ai'
import { ThreadboxError } from '../error.ts'
import { pause } from '../pause.ts'
import { eventsOf } from '../server.ts'

/** How long a server that does not answer, as while it restarts, is asked again. */
const PATIENCE_MS = 30_000
const AGAIN_AFTER_MS = 200

interface ChunksOptions {
  /** Asks for the events after this one. Undefined when none follow. */
  resume(lastEventId: string, signal: AbortSignal): Promise<Response | undefined>
  signal?: AbortSignal | undefined
}

/**
 * The chunks of a reply. A lost connection is made again after the last event, so that no chunk is missing and none comes twice.
 */
export function chunksOf(first: Response, { resume, signal }: ChunksOptions): ReadableStream<UIMessageChunk> {
  const gone = new AbortController()
  const abort = () => gone.abort(signal?.reason)
  if (signal?.aborted) abort()
  else signal?.addEventListener('abort', abort, { once: true })
  const chunks = readChunks(first, resume, gone.signal)
  return new ReadableStream<UIMessageChunk>({
    async pull(controller) {
      try {
        const { done, value } = await chunks.next()
        if (!done) return controller.enqueue(value)
        controller.close()
      } catch (error) {
        controller.error(error)
      }
      signal?.removeEventListener('abort', abort)
    },
    async cancel(reason) {
      gone.abort(reason)
      signal?.removeEventListener('abort', abort)
      await chunks.return().catch(() => {})
    },
  })
}

async function* readChunks(
  first: Response,
  resume: ChunksOptions['resume'],
  signal: AbortSignal,
): AsyncGenerator<UIMessageChunk, void> {
  let response: Response | undefined = first
  let lastEventId: string | undefined
  let answeredAt = Date.now()
  for (;;) {
    try {
      response ??= lastEventId === undefined ? undefined : await resume(lastEventId, signal)
      if (!response) return
      for await (const { id, data } of eventsOf(response)) {
        signal.throwIfAborted()
        if (data === '[DONE]') return
        answeredAt = Date.now()
        lastEventId = id ?? lastEventId
        yield JSON.parse(data)
      }
      // A stream without ids cannot be continued.
      if (lastEventId === undefined) return
    } catch (error) {
      signal.throwIfAborted()
      const isForGood = error instanceof ThreadboxError && error.status < 500
      if (isForGood || lastEventId === undefined || Date.now() - answeredAt > PATIENCE_MS) throw error
    }
    response = undefined
    await pause(AGAIN_AFTER_MS, signal)
  }
}
