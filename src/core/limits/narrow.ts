import { ApiError, messageOf } from '../../errors.ts'
import type { LimitName, LimitTexts, LimitValue, OwnLimits } from '../../model/limit.ts'
import { formatLimit, keySubjects, parseLimits } from './parse.ts'

/**
 * Returns the limits of a key that a caller makes: the requested ones, and the caller's own where none is requested. Throws
 * invalid_request for one that is no limit of a key, or that exceeds the caller's.
 */
export function narrowLimits(
  asked: LimitTexts,
  callers: OwnLimits = {},
  server: Readonly<Record<LimitName, LimitValue>>,
): OwnLimits {
  const wanted = parse(asked)
  for (const name of Object.keys(wanted) as LimitName[]) {
    const most = callers[name] ?? server[name]
    const value = wanted[name]
    if (value && isAbove(value, most))
      throw new ApiError('invalid_request', `limits: ${name} may be ${formatLimit(most)} at most`, { field: 'limits' })
  }
  return { ...callers, ...wanted }
}

function parse(asked: LimitTexts): OwnLimits {
  try {
    return parseLimits(asked, keySubjects)
  } catch (error) {
    throw new ApiError('invalid_request', `limits: ${messageOf(error)}`, { field: 'limits' })
  }
}

/** A rate exceeds another when it allows more per period, or more at once. */
function isAbove(value: LimitValue, most: LimitValue): boolean {
  if (most.count === 0) return false
  if (value.count === 0) return true
  if (value.periodMs === 0) return value.count > most.count
  return value.count > most.count || value.count / value.periodMs > most.count / most.periodMs
}
