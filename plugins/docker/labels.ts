import type { Limits } from '../../src/plugin-api/index.ts'
import { objectOf, parseJson } from '../../src/read/json.ts'

/** How what belongs to threadbox is told apart on an engine. */
export const labels = {
  /** Id of the data directory. */
  data: 'threadbox.data',
  /** Id of the environment. */
  environment: 'threadbox.environment',
  /** What a container was made with, as JSON. */
  made: 'threadbox.made',
} as const

/** What a container was made with, for as long as it exists. */
export interface Made {
  image: string
  limits: Limits
  /** The engine holds it to its disk limit; else its server watches it. */
  hasQuota: boolean
  /** The profile of this build is in force; else the engine's own. */
  hasSeccomp: boolean
  /** The image brings volumes, which no disk limit holds. */
  hasVolumes: boolean
  /** Limits that the engine cannot set. */
  unlimited: (keyof Limits)[]
}

const limitNames = ['memoryMb', 'processes', 'cpus', 'diskMb'] as const

/** Undefined when it is damaged. */
export function parseMade(text: unknown): Made | undefined {
  const made = objectOf(parseJson(String(text))) ?? {}
  const { image } = made
  const limits = parseLimits(made.limits)
  if (typeof image !== 'string' || !limits) return
  const [hasQuota, hasSeccomp, hasVolumes] = [
    made.hasQuota === true,
    made.hasSeccomp === true,
    made.hasVolumes === true,
  ]
  const unlimited = limitNames.filter(name => Array.isArray(made.unlimited) && made.unlimited.includes(name))
  return { image, limits, hasQuota, hasSeccomp, hasVolumes, unlimited }
}

function parseLimits(value: unknown): Limits | undefined {
  const given = objectOf(value)
  if (!given) return
  const limits: Limits = {}
  for (const name of limitNames) {
    const limit = given[name]
    if (limit === undefined) continue
    if (typeof limit !== 'number' || !(limit > 0)) return
    limits[name] = limit
  }
  return limits
}
