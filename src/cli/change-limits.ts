import { formatLimits, type LimitSubjects, parseLimit, parseLimits } from '../core/limits/parse.ts'
import { messageOf } from '../errors.ts'
import type { LimitTexts } from '../model/limit.ts'
import { UsageError } from './command-line.ts'

const SERVERS = '=server'

/**
 * Applies changes such as `requests=5/s` and `runs=0` to the limits of a key or team; `requests=server` removes its own limit.
 * Throws a UsageError.
 */
export function changeLimits(limits: LimitTexts, changes: readonly string[], subjects: LimitSubjects): LimitTexts {
  try {
    const own = parseLimits(limits, subjects)
    for (const text of changes.flatMap(each => each.split(','))) {
      const isServers = text.trim().endsWith(SERVERS)
      const { name, value } = parseLimit(isServers ? text.trim().replace(SERVERS, '=0') : text, subjects)
      if (isServers) delete own[name]
      else own[name] = value
    }
    return formatLimits(own)
  } catch (error) {
    throw new UsageError(`limit: ${messageOf(error)}`)
  }
}

/** Describes limits in one line. */
export const describeLimits = (limits: LimitTexts = {}): string =>
  Object.entries(limits)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ') || "the server's"
