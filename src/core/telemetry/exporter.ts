import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../errors.ts'
import type { Log } from '../runtime.ts'

/** Sends items in batches, so that whoever makes them never waits. */
export interface Exporter<Item> {
  /** Queues an item. Never waits and never throws. Drops the item when too many wait. */
  add(item: Item): void
  /** How many items were dropped or refused. */
  readonly dropped: number
  /** Sends the waiting items for at most `withinMs`, and accepts no more. */
  close(withinMs: number): Promise<void>
}

const MAX_WAITING = 4096
const BATCH = 512
const EVERY_MS = 1000
/** How long the receiver may take to answer. */
const ANSWER_MS = 10_000

export type Send = (url: string, body: string, signal: AbortSignal) => Promise<void>

/** When the receiver is gone, items are dropped and one line is logged; nothing else happens. */
export function createExporter<Item>(
  toBody: (items: readonly Item[]) => object,
  post: (body: string, signal: AbortSignal) => Promise<void>,
): Exporter<Item> {
  const closing = new AbortController()
  let waiting: Item[] = []
  let dropped = 0
  let sending: Promise<void> | undefined

  const send = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH)
      waiting = waiting.slice(BATCH)
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(ANSWER_MS)])
      await post(JSON.stringify(toBody(batch)), signal).catch(() => {
        dropped += batch.length
      })
    }
  }
  const flush = () => {
    sending ??= send().finally(() => {
      sending = undefined
    })
    return sending
  }
  const timer = setInterval(() => void flush(), EVERY_MS)
  timer.unref()

  return {
    get dropped() {
      return dropped
    },
    add(item) {
      if (waiting.length >= MAX_WAITING) dropped += 1
      else waiting.push(item)
    },
    async close(withinMs) {
      clearInterval(timer)
      const patience = sleep(withinMs, undefined, { ref: false }).then(() => closing.abort())
      await Promise.race([Promise.resolve(sending).then(flush), patience])
      dropped += waiting.length
      waiting = []
    },
  }
}

/** Posts to an OTLP receiver. Logs once when that begins to fail, and once when it works again. */
export function createPost(
  url: string,
  headers: Readonly<Record<string, string>>,
  log: Log,
): (body: string, signal: AbortSignal) => Promise<void> {
  const { host } = new URL(url)
  let isFailing = false
  return async (body, signal) => {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body,
        signal,
        redirect: 'manual',
      })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`it answered ${response.status}`)
      if (isFailing) log(`telemetry: ${host} takes spans and metrics again`)
      isFailing = false
    } catch (error) {
      if (!isFailing) log(`telemetry: what ${host} does not take is dropped: ${messageOf(error)}`, 'error')
      isFailing = true
      throw error
    }
  }
}
