import type { Database } from 'bun:sqlite'
import { findEventRange } from '../../db/events.ts'

/** How late a reader may hear of an event. Another process may have made it, so the database is polled. */
const LOOK_MS = 200
const HEARTBEAT_MS = 15_000

/** Wakes all readers of events, with one timer as long as there are readers. */
export interface EventFeed {
  /** Resolves to true when there are events after `than`, and to false when it is time for a heartbeat. */
  later(than: number): Promise<boolean>
  close(): void
}

export function createEventFeed(db: Database): EventFeed {
  const waiting = new Set<{ than: number; wake: (hasEvents: boolean) => void }>()
  let timer: Timer | undefined
  let beatAt = 0

  const stop = () => {
    clearInterval(timer)
    timer = undefined
  }
  const look = () => {
    const { newest } = findEventRange(db)
    const isBeat = performance.now() - beatAt >= HEARTBEAT_MS
    if (isBeat) beatAt = performance.now()
    for (const each of waiting) {
      if (each.than >= newest && !isBeat) continue
      waiting.delete(each)
      each.wake(each.than < newest)
    }
    if (waiting.size === 0) stop()
  }

  return {
    later(than) {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      waiting.add({ than, wake: resolve })
      if (!timer) {
        beatAt = performance.now()
        timer = setInterval(look, LOOK_MS)
      }
      return promise
    },
    close() {
      stop()
      for (const each of waiting) each.wake(false)
      waiting.clear()
    },
  }
}
