import { createLimit } from '../../async/limit.ts'
import { beforeTimeout } from '../../async/timeout.ts'
import { codeOf } from '../../read/error-code.ts'
import type { Resolve } from '../dial.ts'
import { type DnsRecord, types } from './message.ts'
import type { FindRecords } from './upstream.ts'

/** Names of one sandbox that are being asked for, or wait for that. A resolver that hangs would let them pile up. */
const MAX_PENDING = 64
/** Of them those for records: a resolver that does not answer these must leave room for addresses. */
const MAX_PENDING_RECORDS = 32
/** Questions for records that one sandbox has at a resolver at once. */
const MAX_RECORD_LOOKUPS = 8
/** Names without addresses that are asked for other records, or wait for that. It may take longer than programs wait. */
const MAX_CHECKED = 32
/** How long a program waits. The lookup itself may go on. */
const LOOKUP_MS = 10_000
/** How long it may take to find out whether a name without addresses has other records. */
const CERTAIN_MS = 1000
const FOUND_MS = 20_000
const MISSING_MS = 5_000
const MAX_KEPT = 1_000

/** What a resolver says of a name. */
export type Found<T> = { found: T } | 'no-such-name' | 'failed'

/** Which kinds of addresses a name has. */
export interface Kinds {
  has4: boolean
  has6: boolean
}

/** What one sandbox asks the server's resolver for. Never rejects. */
export interface Lookups {
  /** Kept for some seconds, since programs ask for both kinds and again. */
  kindsOf(name: string): Promise<Found<Kinds>>
  records(name: string, type: number): Promise<Found<readonly DnsRecord[]>>
}

export function createLookups(resolve: Resolve, findRecords: FindRecords): Lookups {
  const pending = new Map<string, Promise<Found<unknown>>>()
  const kept = new Map<string, { kinds: Found<Kinds>; until: number }>()
  const inTurn = createLimit(MAX_RECORD_LOOKUPS)
  let pendingRecords = 0
  let checked = 0

  const share = async <T>(key: string, ask: () => Promise<Found<T>>): Promise<Found<T>> => {
    // Only this asks under the key.
    let lookup = pending.get(key) as Promise<Found<T>> | undefined
    if (!lookup) {
      if (pending.size >= MAX_PENDING) return 'failed'
      lookup = ask().finally(() => pending.delete(key))
      pending.set(key, lookup)
    }
    return await beforeTimeout(LOOKUP_MS, lookup, () => 'failed' as const)
  }

  /** The system says the same of a name that has other records alone. */
  const missing = async (name: string): Promise<Found<Kinds>> => {
    if (checked >= MAX_CHECKED) return 'no-such-name'
    checked++
    const records = inTurn(() => asked(() => findRecords(name, types.A))).finally(() => checked--)
    const found = await beforeTimeout(CERTAIN_MS, records, () => 'failed' as const)
    return typeof found === 'string' ? 'no-such-name' : { found: { has4: false, has6: false } }
  }

  const keep = (name: string, kinds: Found<Kinds>) => {
    if (kinds === 'failed') return kinds
    const [oldest] = kept.keys()
    if (kept.size >= MAX_KEPT && oldest !== undefined) kept.delete(oldest)
    const hasAddress = kinds !== 'no-such-name' && (kinds.found.has4 || kinds.found.has6)
    kept.set(name, { kinds, until: performance.now() + (hasAddress ? FOUND_MS : MISSING_MS) })
    return kinds
  }

  return {
    async kindsOf(name) {
      const before = kept.get(name)
      if (before && performance.now() < before.until) return before.kinds
      kept.delete(name)
      return await share(`addresses ${name}`, async () => {
        const addresses = await asked(() => resolve(name))
        if (addresses === 'no-such-name') return keep(name, await missing(name))
        if (addresses === 'failed') return addresses
        const { found } = addresses
        const has6 = found.some(address => address.includes(':'))
        return keep(name, { found: { has4: found.some(address => !address.includes(':')), has6 } })
      })
    },
    async records(name, type) {
      const key = `${type} ${name}`
      if (!pending.has(key) && pendingRecords >= MAX_PENDING_RECORDS) return 'failed'
      return await share(key, async () => {
        pendingRecords++
        return await inTurn(() => asked(() => findRecords(name, type))).finally(() => pendingRecords--)
      })
    },
  }
}

async function asked<T>(ask: () => Promise<readonly T[]>): Promise<Found<readonly T[]>> {
  try {
    return { found: await ask() }
  } catch (error) {
    if (codeOf(error) === 'ENODATA') return { found: [] }
    return codeOf(error) === 'ENOTFOUND' ? 'no-such-name' : 'failed'
  }
}
