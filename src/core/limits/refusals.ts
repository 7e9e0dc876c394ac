import { ApiError } from '../../errors.ts'
import type { LimitName, LimitValue } from '../../model/limit.ts'
import { formatLimit } from './parse.ts'

/** The server tells a caller to wait this many seconds, since it cannot know when a run, a stream or a sandbox ends. */
const OPEN_SECONDS = 1
const KEPT_SECONDS = 60

/** Words for the subject and what is counted, by the two parts of a limit's name. */
const subjectWords: Readonly<Record<string, string>> = {
  key: 'This API key',
  token: 'This token',
  user: 'This end user',
  address: 'This address',
  team: 'This team',
}

const openWords: Readonly<Record<string, string>> = {
  runs: 'runs under way',
  execs: 'commands under way',
  streams: 'streams and WebSockets open',
}

const subjectOf = (limit: LimitName) => subjectWords[limit.split('.')[0] ?? ''] ?? ''
const nameOf = (limit: LimitName) => limit.split('.')[1] ?? ''

/** The refusal of too many requests in a period. `waitMs` is the time until there is room for one. */
export const rateRefusal = (limit: LimitName, value: LimitValue, waitMs: number): ApiError => {
  const seconds = Math.ceil(waitMs / 1000)
  const message = `${subjectOf(limit)} may send ${formatLimit(value)} requests; try again in ${seconds} s.`
  return refusal(limit, value, seconds, message)
}

/** The refusal of too many things at once. */
export const openRefusal = (limit: LimitName, value: LimitValue): ApiError => {
  const what = openWords[nameOf(limit)] ?? nameOf(limit)
  return refusal(limit, value, OPEN_SECONDS, `${subjectOf(limit)} has ${value.count} ${what}, and can have no more.`)
}

/** The refusal of more than the team may keep. `what` is text such as `sandboxes` or `MB of files`. */
export const keptRefusal = (limit: LimitName, value: LimitValue, what: string): ApiError =>
  refusal(
    limit,
    value,
    KEPT_SECONDS,
    `${subjectOf(limit)} has ${value.count} ${what}, and can have no more: remove some.`,
  )

/** The refusal after too many failed authentications from one address. */
export const failuresRefusal = (value: LimitValue, waitMs: number): ApiError => {
  const seconds = Math.ceil(waitMs / 1000)
  const message = `Too many keys from this address were refused; try again in ${seconds} s.`
  return refusal('address.failures', value, seconds, message)
}

const refusal = (limit: LimitName, { count, periodMs }: LimitValue, retryAfterSeconds: number, message: string) =>
  new ApiError('rate_limit_exceeded', message, { limit }, { limit, count, periodMs, retryAfterSeconds })
