import { createHolds } from '../../async/hold.ts'
import { type LimitName, type LimitValue, limits, nameOfLimit, type OwnLimits } from '../../model/limit.ts'
import { createBuckets } from './buckets.ts'
import { networkOf } from './network.ts'
import { openRefusal, rateRefusal } from './refusals.ts'

/** What a caller may have open at once. */
export type OpenName = 'runs' | 'execs' | 'streams'

/** What is known of a caller for counting. */
export interface CountedCaller {
  teamId: string
  keyId?: string
  tokenId?: string
  token?: { userId?: string }
  /** The key's own limits, in place of the server's. */
  limits?: OwnLimits
  request?: { address?: string }
}

/** Counts what callers do, by key, token, end user and address. */
export interface Limits {
  /** Counts a request. Throws rate_limit_exceeded, and counts nothing, when one of the caller's limits is reached. */
  request(caller: CountedCaller): void
  /**
   * Counts something as open until the result is disposed of. Throws rate_limit_exceeded when one of the caller's limits is
   * reached. `userId` is the end user for whom a key acts.
   */
  open(name: OpenName, caller: CountedCaller, userId?: string): Disposable
  /** Counts work that must go on as open, even above a limit. */
  openAnyway(name: OpenName, caller: CountedCaller, userId?: string): Disposable
}

type Counted = [subject: string, limit: LimitName, value: LimitValue]

const subjects = ['key', 'token', 'user', 'address'] as const

/** The names of limits, made once and not at each request. */
const names = Object.fromEntries(limits.map(each => [nameOfLimit(each), nameOfLimit(each)])) as Record<
  string,
  LimitName
>

export function createLimits(server: Readonly<Record<LimitName, LimitValue>>, now?: () => number): Limits {
  const buckets = createBuckets(now)
  const holds = createHolds()

  /** Finds the limits of a caller, each with its subject. Subjects without a limit are counted too, because they may get one. */
  function find(name: 'requests' | OpenName, caller: CountedCaller, userId = caller.token?.userId): Counted[] {
    const found: Counted[] = []
    for (const subject of subjects) {
      const id = subjectOf(subject, caller, userId)
      if (id === undefined) continue
      const limit = names[`${subject}.${name}`] as LimitName
      const value = caller.limits?.[limit] ?? server[limit]
      found.push([`${limit} ${id}`, limit, value])
    }
    return found
  }

  function count(counted: readonly Counted[]): Disposable {
    const held = counted.map(([id]) => holds.hold(id))
    return {
      [Symbol.dispose]() {
        for (const each of held) each[Symbol.dispose]()
      },
    }
  }

  return {
    request(caller) {
      const counted = find('requests', caller)
      for (const [id, limit, value] of counted) {
        const waitMs = value.count === 0 ? 0 : buckets.waitMs(id, value)
        if (waitMs > 0) throw rateRefusal(limit, value, waitMs)
      }
      for (const [id, , value] of counted) if (value.count > 0) buckets.take(id, value)
    },
    open(name, caller, userId) {
      const counted = find(name, caller, userId)
      for (const [id, limit, value] of counted)
        if (value.count > 0 && holds.count(id) >= value.count) throw openRefusal(limit, value)
      return count(counted)
    },
    openAnyway: (name, caller, userId) => count(find(name, caller, userId)),
  }
}

function subjectOf(
  subject: (typeof subjects)[number],
  caller: CountedCaller,
  userId: string | undefined,
): string | undefined {
  if (subject === 'key') return caller.keyId ?? caller.teamId
  if (subject === 'token') return caller.tokenId
  if (subject === 'user') return userId === undefined ? undefined : `${caller.teamId} ${userId}`
  const address = caller.request?.address
  return address === undefined ? undefined : networkOf(address)
}
