import { useSyncExternalStore } from 'react'

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const absolute = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })
const TICK_MS = 10_000

const steps: readonly [limitSeconds: number, unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  [60, 'second', 1],
  [3600, 'minute', 60],
  [86_400, 'hour', 3600],
  [30 * 86_400, 'day', 86_400],
  [365 * 86_400, 'month', 30 * 86_400],
  [Number.POSITIVE_INFINITY, 'year', 365 * 86_400],
]

/** One timer for all times on the page. */
const now = (() => {
  let at = Date.now()
  const listeners = new Set<() => void>()
  let timer: ReturnType<typeof setInterval> | undefined
  return {
    read: () => at,
    subscribe(listener: () => void) {
      listeners.add(listener)
      timer ??= setInterval(() => {
        at = Date.now()
        for (const each of listeners) each()
      }, TICK_MS)
      return () => {
        listeners.delete(listener)
        if (listeners.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
    },
  }
})()

/** Shows how long ago a time was, or how far ahead it is. Its tooltip has the exact moment. */
export function Time({ at }: { at: string }) {
  const current = useSyncExternalStore(now.subscribe, now.read)
  const moment = new Date(at)
  return (
    <time dateTime={at} title={absolute.format(moment)}>
      {describe((moment.getTime() - current) / 1000)}
    </time>
  )
}

function describe(seconds: number): string {
  if (Math.abs(seconds) < 10) return 'now'
  const [, unit, size] = steps.find(([limit]) => Math.abs(seconds) < limit) ?? ([0, 'second', 1] as const)
  return relative.format(Math.round(seconds / size), unit)
}
