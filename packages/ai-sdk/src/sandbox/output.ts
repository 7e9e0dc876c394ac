import { convertBase64ToUint8Array } from '@ai-sdk/provider-utils'
import { ThreadboxError } from '../error.ts'
import { pause } from '../pause.ts'
import { eventsOf } from '../server.ts'
import type { Place } from './place.ts'

export type OutputEvent = { type: 'stdout' | 'stderr'; bytes: Uint8Array } | { type: 'exit'; exitCode: number }

type WireEvent =
  | { type: 'stdout' | 'stderr'; offset: number; data: string }
  | { type: 'gap'; offset: number }
  | { type: 'exit'; exitCode: number | null }
  | { type: 'error'; message?: string }

/** How long a server that does not answer, as while it restarts, is asked again. */
const PATIENCE_MS = 30_000
const AGAIN_AFTER_MS = 250

/**
 * Yields the output of a process up to its exit. A lost connection is continued where it broke off, so nothing comes twice.
 * Rejects when output was lost, when the server does not answer for half a minute, and with the signal's reason.
 */
export async function* readOutput(place: Place, pid: number, signal: AbortSignal): AsyncGenerator<OutputEvent, void> {
  let offset = 0
  let answeredAt = Date.now()
  for (;;) {
    try {
      const path = `${place.path}/processes/${pid}/output?encoding=base64&offset=${offset}`
      const response = await place.server.request('GET', path, { signal })
      for await (const { data } of eventsOf(response)) {
        if (data === '[DONE]') break
        answeredAt = Date.now()
        const event: WireEvent = JSON.parse(data)
        if (event.type === 'error') break
        if (event.type === 'gap') throw new LostOutput(event.offset - offset)
        if (event.type === 'exit') {
          yield { type: 'exit', exitCode: event.exitCode ?? 1 }
          return
        }
        const bytes = convertBase64ToUint8Array(event.data)
        offset = event.offset + bytes.byteLength
        yield { type: event.type, bytes }
      }
    } catch (error) {
      signal.throwIfAborted()
      const isForGood = error instanceof LostOutput || (error instanceof ThreadboxError && error.status < 500)
      if (isForGood || Date.now() - answeredAt > PATIENCE_MS) throw error
    }
    await pause(AGAIN_AFTER_MS, signal)
  }
}

class LostOutput extends Error {
  constructor(bytes: number) {
    super(`${bytes} bytes of output were lost: they were not read for ten seconds.`)
  }
}
