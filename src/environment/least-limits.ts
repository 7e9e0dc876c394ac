import { ApiError } from '../errors.ts'
import type { Limits } from '../plugin-api/index.ts'

/** With less, a sandbox does not start on a busy machine, or no command in it does. */
export const leastLimits = { memoryMb: 16, processes: 16, cpus: 0.01, diskMb: 1 } as const

const units: Readonly<Record<keyof Limits, string>> = {
  memoryMb: ' MB of memory',
  processes: ' processes',
  cpus: ' CPU cores',
  diskMb: ' MB of disk',
}

/** What is wrong with each limit that a sandbox could not live with, by its name. Zero is no limit. */
export const faultsOfLimits = (limits: Limits): [name: string, what: string][] =>
  (Object.keys(leastLimits) as (keyof Limits)[]).flatMap(name => {
    const limit = limits[name]
    if (!limit || limit >= leastLimits[name]) return []
    const what = `${limit} is too low for a sandbox to start: it needs ${leastLimits[name]}${units[name]} or more`
    return [[name, what]]
  })

/** Throws invalid_request for the first limit that is too low for a sandbox to start. */
export function assertLimits(limits: Limits): void {
  const [first] = faultsOfLimits(limits)
  if (first) throw new ApiError('invalid_request', `limits.${first[0]}: ${first[1]}`, { field: `limits.${first[0]}` })
}
