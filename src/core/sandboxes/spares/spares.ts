import { availableParallelism } from 'node:os'
import { settlesWithin } from '../../../async/timeout.ts'
import { messageOf } from '../../../errors.ts'
import type { EnvironmentStart, Runtime, Spares } from '../../runtime.ts'
import { affordableSpares } from './affordable.ts'
import { discardSpare, makeSpare, type Spare, tryOut } from './make-spare.ts'

/** How long the server must be idle before a spare is made, because making one takes a whole core for about that long. */
const QUIET_MS = 40
/** A server that is never quiet makes one after this time. */
const PATIENCE_MS = 2000
const MADE_AT_ONCE = Math.max(1, Math.floor(availableParallelism() / 2))
const LOOK_EVERY_MS = 10_000
/** How often a spare is tried out: a broken one is replaced, and no spare counts as idle. */
const TRY_EVERY_MS = 60_000
const RETRY_MS = 10_000
/** How long `close` waits. A spare that is being made may wait for a download; the next start removes what is left. */
const GONE_WITHIN_MS = 10_000
const RETRY_AT_MOST_MS = 600_000

/**
 * Keeps environments ready for the next creates: on each backend in use as many as the configuration says, made as the last
 * creates asked for.
 *
 * Over 100 lines: the stock and the state that decides about it belong together.
 */
export function createSpares(getRuntime: () => Runtime): Spares {
  /** Oldest first. Whoever removes one from here is its only owner. */
  const ready: (Spare & { triedAt: number })[] = []
  const making = new Map<EnvironmentStart, Promise<void>>()
  const discarding = new Set<Promise<void>>()
  /** The settings of past creates, newest first. */
  const asked: EnvironmentStart[] = []
  let isOpen = false
  let held = 0
  let quietAt = 0
  /** Since when a spare is missing. */
  let wantingSince: number | undefined
  /** Backends on which the last try failed; the others go on. */
  const failed = new Map<string, { count: number; retryAt: number }>()
  /** Resolves once no spare is missing, or none can be made. */
  const filled = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  let looking: NodeJS.Timeout | undefined

  const discard = (spare: Spare) => {
    const gone = discardSpare(getRuntime(), spare).finally(() => discarding.delete(gone))
    discarding.add(gone)
  }

  const canBeSpare = ({ backend }: EnvironmentStart) => getRuntime().backends.get(backend)?.claimSpare !== undefined

  /** Lists the spares that should be ready or on their way, the newest wish first. */
  const listWanted = (): EnvironmentStart[] => {
    const { config, diskSpace } = getRuntime()
    const present = ready.length + making.size
    const most = present + affordableSpares(diskSpace, present)
    return [...Map.groupBy(asked, ({ backend }) => backend).values()]
      .flatMap(starts => Array.from({ length: config.spares }, (_, index) => starts[index] ?? starts[0]))
      .filter(each => each !== undefined)
      .slice(0, most)
  }

  /** Discards spares that are not wanted any more, and returns those that are missing. */
  const compare = (): EnvironmentStart[] => {
    const missing = listWanted()
    const fits = (start: EnvironmentStart) => {
      const index = missing.findIndex(each => Bun.deepEquals(each, start))
      if (index >= 0) missing.splice(index, 1)
      return index >= 0
    }
    for (const start of making.keys()) fits(start)
    for (const spare of [...ready]) {
      if (fits(spare.start)) continue
      ready.splice(ready.indexOf(spare), 1)
      discard(spare)
    }
    return missing
  }

  const make = async (start: EnvironmentStart) => {
    try {
      const spare = await makeSpare(getRuntime(), start)
      failed.delete(start.backend)
      if (!isOpen) return await discardSpare(getRuntime(), spare)
      ready.push({ ...spare, triedAt: performance.now() })
      getRuntime().log(`${spare.environment.id} stands ready as a spare`, 'debug')
    } catch (error) {
      filled.resolve()
      const count = failed.get(start.backend)?.count ?? 0
      const retryAt = performance.now() + Math.min(RETRY_MS * 2 ** count, RETRY_AT_MOST_MS)
      failed.set(start.backend, { count: count + 1, retryAt })
      if (isOpen && count === 0)
        getRuntime().log(`no spare sandbox could be made on ${start.backend}: ${messageOf(error)}`)
    }
  }

  /** Makes the missing spares once the server is idle. */
  const fill = () => {
    clearTimeout(timer)
    if (!isOpen || held > 0 || making.size >= MADE_AT_ONCE) return
    const now = performance.now()
    wantingSince ??= now
    const waitMs = Math.min(quietAt, wantingSince + PATIENCE_MS) - now
    if (waitMs > 0) {
      timer = setTimeout(fill, waitMs)
      return
    }
    wantingSince = undefined
    const missing = compare()
    if (missing.length === 0 && making.size === 0) filled.resolve()
    // A backend that must wait after a failure is tried again by the timer `looking`.
    const due = missing.filter(({ backend }) => (failed.get(backend)?.retryAt ?? 0) <= now)
    for (const start of due.slice(0, MADE_AT_ONCE - making.size)) {
      // A copy, because two wishes may be the same object.
      const own = { ...start }
      const made = make(own).finally(() => {
        making.delete(own)
        fill()
      })
      making.set(own, made)
    }
  }

  const tryOutOld = async () => {
    const now = performance.now()
    for (const spare of ready.filter(({ triedAt }) => now - triedAt >= TRY_EVERY_MS)) {
      spare.triedAt = now
      await tryOut(spare.environment).catch(() => {
        const index = ready.indexOf(spare)
        if (index < 0) return
        ready.splice(index, 1)
        discard(spare)
      })
    }
  }

  const defer = () => {
    quietAt = performance.now() + QUIET_MS
  }

  return {
    async start(first) {
      const { config } = getRuntime()
      if (config.spares === 0) return
      isOpen = true
      if (canBeSpare(first)) asked.push(first)
      defer()
      fill()
      looking = setInterval(() => {
        fill()
        void tryOutOld()
      }, LOOK_EVERY_MS)
      await filled.promise
    },
    async take({ env, network, ...start }) {
      if (!isOpen || !canBeSpare(start)) return undefined
      defer()
      const index = ready.findIndex(spare => Bun.deepEquals(spare.start, start))
      const [spare] = index < 0 ? [] : ready.splice(index, 1)
      if (!spare) return undefined
      const { environment } = spare
      const { backend: name, ...rest } = start
      const spec = { ...rest, id: environment.id, ...(env && { env }), ...(network && { network }) }
      const isFit = await getRuntime()
        .backends.get(name)
        ?.claimSpare?.(spec)
        .catch(() => false)
      if (isFit) return environment
      getRuntime().log(`${environment.id} is a spare no more: it does not run, or what it was made from has changed`)
      discard(spare)
      return undefined
    },
    wasAsked({ env, network, ...start }) {
      if (!isOpen || !canBeSpare(start)) return
      asked.unshift(start)
      const excess = asked.filter(({ backend }) => backend === start.backend)[getRuntime().config.spares]
      if (excess) asked.splice(asked.lastIndexOf(excess), 1)
      defer()
      fill()
    },
    count: () => ready.length,
    defer,
    hold() {
      held++
      return {
        [Symbol.dispose]() {
          held--
          defer()
          fill()
        },
      }
    },
    async close() {
      isOpen = false
      filled.resolve()
      clearTimeout(timer)
      clearInterval(looking)
      for (const spare of ready.splice(0)) discard(spare)
      // Spares that are being made discard themselves.
      await settlesWithin(GONE_WITHIN_MS, Promise.all([...making.values(), ...discarding]))
    },
  }
}
