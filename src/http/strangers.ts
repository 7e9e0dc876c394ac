import { refusedKeyOf } from '../core/access/access.ts'
import { ApiError } from '../errors.ts'

/** A line for each refused authentication: address, reason, and the key that is known. Never what was shown. */
export interface Strangers {
  refused(error: unknown, address: string | undefined): void
}

const MAX_LINES = 60
const PERIOD_MS = 60_000

/** At most 60 lines a minute; how many more there were is said with the first line after it. */
export function watchStrangers(log: (line: string) => void, now: () => number = () => performance.now()): Strangers {
  let periodStart = Number.NEGATIVE_INFINITY
  let lines = 0
  let silent = 0
  return {
    refused(error, address = 'an unknown address') {
      if (!(error instanceof ApiError) || error.code !== 'unauthorized') return
      if (now() - periodStart >= PERIOD_MS) {
        if (silent > 0) log(`unauthorized: ${silent} more in the last minutes`)
        periodStart = now()
        lines = 0
        silent = 0
      }
      lines += 1
      if (lines > MAX_LINES) {
        silent += 1
        return
      }
      const key = refusedKeyOf(error)
      log(`unauthorized: ${address}${key === undefined ? '' : `, key ${key}`}: ${error.message}`)
    },
  }
}
