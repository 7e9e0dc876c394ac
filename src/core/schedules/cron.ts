import { ApiError, messageOf } from '../../errors.ts'

/** The times at which a schedule is due. */
export interface Times {
  cron: string
  timeZone: string
}

/**
 * Finds the first moment of a cron expression after another moment. It is undefined when the expression matches no moment of the next
 * eight years. A time of day that a clock change skips moves forward by the size of the change. A time that comes twice counts the first time, unless
 * the minute or the hour is `*`. Throws for a wrong expression or time zone.
 */
export const nextTime = ({ cron, timeZone }: Times, after: Date): string | undefined =>
  Bun.cron.parse(cron, after, { tz: timeZone })?.toISOString()

/** Throws invalid_request that says what is wrong. */
export function assertTimes({ cron, timeZone }: Times): void {
  const wrong = (field: keyof Times, what: string) => new ApiError('invalid_request', `${field}: ${what}`, { field })
  if (!isTimeZone(timeZone)) throw wrong('timeZone', 'no time zone of this name; send one as Europe/Berlin, or UTC')
  try {
    if (nextTime({ cron, timeZone }, new Date()) === undefined) throw wrong('cron', 'it never comes')
  } catch (error) {
    if (error instanceof ApiError) throw error
    const why = messageOf(error).replace(/^Invalid cron expression: /, '')
    throw wrong('cron', `${why}; send five fields, as 30 9 * * MON-FRI, or @daily`)
  }
}

function isTimeZone(name: string): boolean {
  try {
    return name !== '' && nextTime({ cron: '@daily', timeZone: name }, new Date(0)) !== undefined
  } catch {
    return false
  }
}
