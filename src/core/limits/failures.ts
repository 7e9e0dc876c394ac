import type { LimitValue } from '../../model/limit.ts'
import { networkOf } from './network.ts'
import { createRecent } from './recent.ts'
import { failuresRefusal } from './refusals.ts'

/** Slows down callers who guess keys. */
export interface Failures {
  /**
   * Call it before a credential is checked. Returns undefined when the check may be made at once. After some failures from its
   * address a credential waits for its turn, each longer than the one before; throws rate_limit_exceeded when that takes too
   * long. A credential that was valid from this address before never waits, because somebody else there may have failed.
   */
  admit(address: string | undefined, credential: string, signal: AbortSignal): Promise<void> | undefined
  passed(address: string | undefined, credential: string): void
  failed(address: string | undefined, credential: string): void
}

/** How long the first credential after too many failures waits. Each later one waits twice as long. */
const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 30_000
/** A request that would wait longer is refused instead. */
const HELD_MS = 1000
/** How many requests may wait, of all addresses together. */
const MAX_HELD = 1000
/** How many addresses are remembered with their failures, and how many pairs of address and credential as valid. */
const ADDRESSES = 10_000
const CREDENTIALS = 10_000

interface Tried {
  /** Failures that are not forgiven yet; they are forgiven one by one at the limit's rate. */
  count: number
  at: number
  /** When the next credential may be checked. */
  freeAt: number
}

export interface FailuresClock {
  now(): number
  /** Resolves after so long, or when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

const systemClock: FailuresClock = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise(resolve => {
      const wake = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      signal.addEventListener('abort', wake)
      if (signal.aborted) wake()
    }),
}

/** `limit` says how many failures of one address have no consequence. An IPv6 address stands for its network of 64 bits. */
export function createFailures(limit: LimitValue, { now, sleep } = systemClock): Failures {
  const tried = createRecent<Tried>(ADDRESSES)
  const good = createRecent<true>(CREDENTIALS)
  let held = 0

  const nameOf = (network: string, credential: string) => `${network} ${Bun.hash(credential)}`
  const forgiven = (each: Tried) => ((now() - each.at) * limit.count) / limit.periodMs

  function find(network: string): Tried | undefined {
    const each = tried.get(network)
    if (!each) return undefined
    each.count -= forgiven(each)
    each.at = now()
    if (each.count > 0) return each
    tried.delete(network)
    return undefined
  }

  /** Takes the next turn of an address and returns how long the credential waits for it. Throws when that is too long. */
  function takeTurn(each: Tried): number {
    const over = Math.ceil(each.count - limit.count)
    const startsAt = Math.max(now(), each.freeAt)
    const waitMs = startsAt - now()
    if (waitMs > HELD_MS || held >= MAX_HELD) throw failuresRefusal(limit, Math.max(waitMs, HELD_MS))
    each.freeAt = startsAt + Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** over)
    return waitMs
  }

  async function hold(ms: number, signal: AbortSignal): Promise<void> {
    held += 1
    await sleep(ms, signal)
    held -= 1
  }

  return {
    admit(address, credential, signal) {
      if (tried.isEmpty() || limit.count === 0 || address === undefined) return undefined
      const network = networkOf(address)
      const each = find(network)
      if (!each || each.count < limit.count || good.get(nameOf(network, credential))) return undefined
      const waitMs = takeTurn(each)
      return waitMs > 0 ? hold(waitMs, signal) : undefined
    },
    passed(address, credential) {
      if (limit.count === 0 || address === undefined) return
      const name = nameOf(networkOf(address), credential)
      if (!good.get(name)) good.set(name, true)
    },
    failed(address, credential) {
      if (limit.count === 0 || address === undefined) return
      const network = networkOf(address)
      good.delete(nameOf(network, credential))
      const each = find(network) ?? { count: 0, at: now(), freeAt: 0 }
      each.count += 1
      tried.set(network, each)
    },
  }
}
