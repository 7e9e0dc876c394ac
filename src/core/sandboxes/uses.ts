import { createLimit } from '../../async/limit.ts'
import { beforeTimeout } from '../../async/timeout.ts'
import type { EnvironmentPlace } from '../../model/environment.ts'
import type { Use } from '../../model/use.ts'
import type { Backend, EnvironmentUsage } from '../../plugin-api/index.ts'
import type { Uses } from '../runtime.ts'

const SAMPLE_EVERY_MS = 10_000
const KEPT_MS = 3_600_000
/** When more sandboxes than this run, each is sampled less often. */
const SAMPLED_AT_ONCE = 200
const ASKED_AT_ONCE = 8
/** A reading that is younger is used again. */
const FRESH_MS = 4000
/** How long an answer waits for a backend; a later reading is shown with the next answer. */
const WITHIN_MS = 1000
/** Over a shorter time, CPU time says little. */
const LEAST_CPU_MS = 900

/** Smaller changes of a sandbox's disk use are not reported. */
const DISK_CHANGE_BYTES = 1024 * 1024

interface Watched {
  place: EnvironmentPlace
  samples: Use[]
  latest?: Use
  /** The value that `onDisk` was called with last. */
  toldBytes?: number
  /** The CPU time at a reading, and the cores in use since the one before. */
  cpu?: { ms: number; at: number; cpus?: number }
  reading?: Promise<Use | undefined>
}

export interface UsesOptions {
  everyMs?: number
  /** Called with the bytes of a sandbox's files when they have changed by a megabyte or more. */
  onDisk?: (environmentId: string, diskBytes: number) => void
}

/**
 * Measures what sandboxes use and remembers the last hour. Only running sandboxes are measured, and measuring starts none. While
 * no sandbox runs there is no timer.
 *
 * Over 100 lines: readings and samples share one table.
 */
export function createUses(
  backends: ReadonlyMap<string, Backend>,
  { everyMs = SAMPLE_EVERY_MS, onDisk = () => {} }: UsesOptions = {},
): Uses {
  /** Environments that were used, those that were measured longest ago first. */
  const watched = new Map<string, Watched>()
  const limit = createLimit(ASKED_AT_ONCE)
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  /** A plugin's backend that fails counts as one without running environments, because nobody catches an error of the timer. */
  const runningOf = (name: string): ReadonlySet<string> => {
    try {
      return new Set(backends.get(name)?.listRunning?.() ?? [])
    } catch {
      return new Set()
    }
  }

  const read = async (each: Watched): Promise<Use | undefined> => {
    const environment = await backends.get(each.place.backend)?.open(each.place.environmentId)
    const usage = await environment?.usage?.()
    if (!usage || Object.keys(usage).length === 0) return undefined
    const at = Date.now()
    const cpus = usage.cpus ?? cpusBetween(each, usage, performance.now())
    const { memoryBytes, diskBytes, processes } = usage
    if (diskBytes !== undefined && Math.abs(diskBytes - (each.toldBytes ?? -DISK_CHANGE_BYTES)) >= DISK_CHANGE_BYTES) {
      each.toldBytes = diskBytes
      onDisk(each.place.environmentId, diskBytes)
    }
    each.latest = {
      at,
      ...(memoryBytes !== undefined && { memoryBytes }),
      ...(diskBytes !== undefined && { diskBytes }),
      ...(cpus !== undefined && { cpus }),
      ...(processes !== undefined && { processes }),
    }
    return each.latest
  }

  /** Takes a reading; callers for one sandbox share it. Never rejects: a backend that fails gives no value. */
  const take = (each: Watched): Promise<Use | undefined> => {
    if (each.latest && Date.now() - each.latest.at < FRESH_MS) return Promise.resolve(each.latest)
    each.reading ??= limit(() => read(each))
      .catch(() => undefined)
      .finally(() => {
        delete each.reading
      })
    return each.reading
  }

  const watch = (place: EnvironmentPlace): Watched => {
    const known = watched.get(place.environmentId)
    if (known) return known
    const { backend, environmentId } = place
    const added: Watched = { place: { backend, environmentId }, samples: [] }
    watched.set(environmentId, added)
    return added
  }

  const sample = async () => {
    const since = Date.now() - KEPT_MS
    const running = new Map([...backends.keys()].map(name => [name, runningOf(name)]))
    const active: Watched[] = []
    for (const [id, each] of watched) {
      while ((each.samples[0]?.at ?? since) < since) each.samples.shift()
      if (running.get(each.place.backend)?.has(id)) active.push(each)
      else if (each.samples.length === 0) watched.delete(id)
    }
    if (active.length === 0) return
    const chosen = active.slice(0, SAMPLED_AT_ONCE)
    for (const each of chosen) {
      watched.delete(each.place.environmentId)
      watched.set(each.place.environmentId, each)
    }
    await Promise.all(
      chosen.map(async each => {
        const use = await take(each)
        if (use && use !== each.samples.at(-1)) each.samples.push(use)
      }),
    )
    schedule()
  }

  const schedule = () => {
    if (timer || isClosed) return
    timer = setTimeout(() => {
      timer = undefined
      void sample()
    }, everyMs)
    timer.unref()
  }

  return {
    everyMs,
    note(place) {
      watch(place)
      schedule()
    },
    async now(places) {
      const running = new Map([...new Set(places.map(({ backend }) => backend))].map(name => [name, runningOf(name)]))
      const asked = places.map(place => {
        if (!running.get(place.backend)?.has(place.environmentId)) return undefined
        schedule()
        return take(watch(place))
      })
      const late = Promise.all(asked.map(each => each && beforeTimeout(WITHIN_MS, each, () => undefined)))
      return (await late).map(
        (use, index) => use ?? (asked[index] && watched.get(places[index]?.environmentId ?? '')?.latest),
      )
    },
    samples: environmentId => watched.get(environmentId)?.samples ?? [],
    forget: environmentId => void watched.delete(environmentId),
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

/** The cores in use since the reading before. Undefined at the first reading and after a restart. */
function cpusBetween(each: Watched, { cpuMs }: EnvironmentUsage, now: number): number | undefined {
  if (cpuMs === undefined) return undefined
  const before = each.cpu
  if (before && now - before.at < LEAST_CPU_MS) return before.cpus
  const cpus = before && cpuMs >= before.ms ? (cpuMs - before.ms) / (now - before.at) : undefined
  each.cpu = { ms: cpuMs, at: now, ...(cpus !== undefined && { cpus }) }
  return cpus
}
