import type { Limits } from '../../src/plugin-api/index.ts'
import { objectOf, parseJson } from '../../src/read/json.ts'

/** Labels by which threadbox recognises its own containers on an engine. */
export const labels = {
  /** The data directory's id. */
  data: 'threadbox.data',
  /** The environment's id. */
  environment: 'threadbox.environment',
  /** What a container was made with, as JSON. */
  createdWith: 'threadbox.made',
} as const

/** What a container was made with, for as long as it exists. */
export interface CreatedWith {
  image: string
  limits: Limits
  /** The engine's runtime that the caller asked for. Undefined for the engine's default. */
  runtime?: string
  /** The engine holds it to its disk limit; else its server watches it. */
  hasQuota: boolean
  /** The profile of this build is in force; else the engine's own. */
  hasSeccomp: boolean
  /** The image brings volumes, which no disk limit holds. */
  hasVolumes: boolean
  /** Whether the container has its own image, which was restored from a backup and is removed with the container. */
  hasOwnImage?: boolean
  /** Limits that the engine cannot set. */
  unlimited: (keyof Limits)[]
}

const limitNames = ['memoryMb', 'processes', 'cpus', 'diskMb'] as const

/** Reads the label `createdWith`. Undefined when it is damaged. */
export function parseCreatedWith(text: unknown): CreatedWith | undefined {
  const given = objectOf(parseJson(String(text))) ?? {}
  const { image, runtime } = given
  const limits = parseLimits(given.limits)
  if (typeof image !== 'string' || !limits) return
  const [hasQuota, hasSeccomp, hasVolumes] = [
    given.hasQuota === true,
    given.hasSeccomp === true,
    given.hasVolumes === true,
  ]
  const unlimited = limitNames.filter(name => Array.isArray(given.unlimited) && given.unlimited.includes(name))
  const hasOwnImage = given.hasOwnImage === true
  const chosen = typeof runtime === 'string' ? { runtime } : {}
  return { image, limits, ...chosen, hasQuota, hasSeccomp, hasVolumes, ...(hasOwnImage && { hasOwnImage }), unlimited }
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
