import { describe, expect, test } from 'bun:test'
import { assertTimes, nextTime } from '../../src/core/schedules/cron.ts'
import { findNext } from '../../src/core/schedules/due.ts'

const next = (cron: string, timeZone: string, after: string, count: number) => {
  const found: string[] = []
  for (let at: string | undefined = after; found.length < count; found.push(at)) {
    at = nextTime({ cron, timeZone }, new Date(at))
    if (at === undefined) break
  }
  return found
}

describe('where the clocks change', () => {
  test('a time that does not exist comes as much later as the clocks jump, on that day alone', () => {
    expect(next('30 2 * * *', 'Europe/Berlin', '2026-03-28T00:00:00Z', 3)).toEqual([
      '2026-03-28T01:30:00.000Z',
      '2026-03-29T01:30:00.000Z',
      '2026-03-30T00:30:00.000Z',
    ])
  })

  test('a time that is there twice comes the first time', () => {
    expect(next('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', 2)).toEqual([
      '2026-10-25T00:30:00.000Z',
      '2026-10-26T01:30:00.000Z',
    ])
  })

  test('what comes every hour or every few minutes goes on evenly', () => {
    const hours = ['2026-10-25T00:00:00.000Z', '2026-10-25T01:00:00.000Z', '2026-10-25T02:00:00.000Z']
    expect(next('0 * * * *', 'Europe/Berlin', '2026-10-24T23:30:00Z', 3)).toEqual(hours)
    expect(next('0 * * * *', 'Europe/Berlin', '2026-03-28T23:30:00Z', 3)).toEqual([
      '2026-03-29T00:00:00.000Z',
      '2026-03-29T01:00:00.000Z',
      '2026-03-29T02:00:00.000Z',
    ])
  })

  test('a jump of half an hour, and one at midnight', () => {
    expect(next('15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00:00Z', 2)).toEqual([
      '2026-10-03T15:45:00.000Z',
      '2026-10-04T15:15:00.000Z',
    ])
    expect(next('0 0 * * *', 'America/Havana', '2026-03-08T00:00:00Z', 2)).toEqual([
      '2026-03-08T05:00:00.000Z',
      '2026-03-09T04:00:00.000Z',
    ])
  })
})

describe('what is no schedule', () => {
  test.each([
    ['60 * * * *', 'UTC', /^cron: value out of range/],
    ['* * * *', 'UTC', /^cron: expected 5 space-separated fields/],
    ['* * * * * *', 'UTC', /^cron: too many fields/],
    ['@reboot', 'UTC', /^cron: unrecognized/],
    ['', 'UTC', /^cron: expected 5/],
    ['0 0 30 2 *', 'UTC', /^cron: it never comes/],
    ['@daily', 'Mars/Olympus', /^timeZone: no time zone of this name/],
    ['@daily', '', /^timeZone: no time zone/],
    ['@daily', '+02:00', /^timeZone: no time zone/],
  ])('%p in %p is refused with words', (cron, timeZone, words) => {
    expect(() => assertTimes({ cron, timeZone })).toThrow(words)
  })

  test.each(['@hourly', '0 0 29 2 *', '*/15 9-17 * * MON-FRI', '0 0 1,15 * 7'])('%p is one', cron => {
    expect(() => assertTimes({ cron, timeZone: 'Europe/Berlin' })).not.toThrow()
  })
})

describe('a clock that is set back', () => {
  const minutely = { cron: '* * * * *', timeZone: 'UTC' }
  test('by minutes: what was dealt with does not come again', () => {
    const after = findNext({ ...minutely, lastDueAt: '2026-01-01T12:30:00.000Z' }, new Date('2026-01-01T12:10:00Z'))
    expect(after).toBe('2026-01-01T12:31:00.000Z')
  })
  test('by years, because it was wrong: it goes by the right one', () => {
    const after = findNext({ ...minutely, lastDueAt: '2036-01-01T12:30:00.000Z' }, new Date('2026-01-01T12:10:00Z'))
    expect(after).toBe('2026-01-01T12:11:00.000Z')
  })
})
