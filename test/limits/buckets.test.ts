import { expect, test } from 'bun:test'
import { createBuckets } from '../../src/core/limits/buckets.ts'
import { createFailures } from '../../src/core/limits/failures.ts'
import { createLimits } from '../../src/core/limits/limits.ts'
import { networkOf } from '../../src/core/limits/network.ts'
import {
  defaultLimits,
  formatLimits,
  keySubjects,
  parseLimit,
  parseLimits,
  readLimits,
} from '../../src/core/limits/parse.ts'
import { ApiError } from '../../src/errors.ts'

const perSecond = (count: number) => ({ count, periodMs: 1000 })
const never = new AbortController().signal

test('a bucket gives as many as it holds, and is filled again at its rate', () => {
  let now = 0
  const buckets = createBuckets(() => now)
  const take = () => buckets.waitMs('a', perSecond(5)) === 0 && buckets.take('a', perSecond(5)) >= 0
  expect(Array.from({ length: 6 }, take)).toEqual([true, true, true, true, true, false])
  expect(buckets.waitMs('a', perSecond(5))).toBe(200)
  expect(buckets.waitMs('b', perSecond(5))).toBe(0)
  now += 200
  expect([take(), take()]).toEqual([true, false])
  now += 3_600_000
  expect(Array.from({ length: 6 }, take)).toEqual([true, true, true, true, true, false])
})

test('buckets know so many subjects and no more: those that were seen last', () => {
  const buckets = createBuckets(() => 0, 100)
  const one = perSecond(1)
  for (let index = 0; index < 10_000; index++) {
    buckets.take(`stranger ${index}`, one)
    if (index % 50 === 0) buckets.take('regular', one)
  }
  expect(buckets.waitMs('stranger 0', one)).toBe(0)
  expect(buckets.waitMs('stranger 9999', one)).toBe(1000)
  expect(buckets.waitMs('regular', one)).toBeGreaterThan(0)
})

test('who is refused for one limit uses up nothing of the others', () => {
  const limits = createLimits(
    { ...defaultLimits(), 'key.requests': perSecond(2), 'user.requests': perSecond(1) },
    () => 0,
  )
  const user = { teamId: 't', keyId: 'k', token: { userId: 'u' } }
  limits.request(user)
  expect(() => limits.request(user)).toThrow('This end user may send 1/s requests')
  limits.request({ teamId: 't', keyId: 'k' })
  expect(() => limits.request({ teamId: 't', keyId: 'k' })).toThrow('This API key may send 2/s requests')
})

test("a key's own limits replace the server's, with those of its tokens and end users", () => {
  const limits = createLimits(defaultLimits(), () => 0)
  const own = readLimits({ 'key.runs': '2', 'user.runs': '1', 'key.nothing': '5', 'key.requests': 'soon' })
  const caller = { teamId: 't', keyId: 'k', limits: own }
  const first = limits.open('runs', caller, 'ann')
  expect(() => limits.open('runs', caller, 'ann')).toThrow('This end user has 1 runs under way, and can have no more.')
  const second = limits.open('runs', caller, 'bob')
  expect(() => limits.open('runs', caller, 'eve')).toThrow('This API key has 2 runs under way, and can have no more.')
  second[Symbol.dispose]()
  second[Symbol.dispose]()
  limits.open('runs', caller, 'eve')
  expect(() => limits.open('runs', caller, 'bob')).toThrow(ApiError)
  first[Symbol.dispose]()
  limits.openAnyway('runs', caller)
  expect(() => limits.open('runs', caller, 'bob')).toThrow(ApiError)
  limits.open('runs', { ...caller, limits: { 'key.runs': { count: 0, periodMs: 0 } } })
})

test('limits are read as they are written, and mistakes are named', () => {
  const texts = { 'key.requests': '5/s', 'token.requests': '100/m', 'user.runs': '2', 'key.streams': '0' }
  expect(formatLimits(parseLimits(texts, keySubjects))).toEqual(texts)
  const wrong = (text: string) => (words: string) => expect(() => parseLimit(text, keySubjects)).toThrow(words)
  wrong('requests=5')('requests must be like 5/s, 100/m, 1000/h or 5000/d; 0 is no limit')
  wrong('runs=2/s')('runs must be a whole number; 0 is no limit')
  wrong('runs=-1')('runs must be a whole number; 0 is no limit')
  wrong('rums=1')('no such limit: rums')
  wrong('failures=1/s')('no such limit: failures')
  wrong('runs')('must be NAME=NUMBER')
})

test('an IPv6 address counts as its network of 64 bits, an IPv4 address alone', () => {
  expect(networkOf('2001:db8::1')).toBe(networkOf('2001:db8:0:0:ffff::2'))
  expect(networkOf('2001:db8:0:1::1')).not.toBe(networkOf('2001:db8::1'))
  expect(networkOf('192.0.2.1')).not.toBe(networkOf('192.0.2.2'))
})

/** A clock that moves only when somebody sleeps. */
function failuresScene(count = 20) {
  let nowMs = 0
  const slept: number[] = []
  const clock = {
    now: () => nowMs,
    sleep: async (ms: number) => {
      slept.push(ms)
      nowMs += ms
    },
  }
  const failures = createFailures({ count, periodMs: 60_000 }, clock)
  return { failures, slept, pass: (ms: number) => (nowMs += ms), now: () => nowMs }
}

test('300 wrong keys from one address are slowed, each more than the one before; others are not', async () => {
  const { failures, slept, now } = failuresScene()
  failures.passed('192.0.2.1', 'Bearer good')
  let [looked, refused] = [0, 0]
  for (let index = 0; index < 300; index++) {
    try {
      await failures.admit('192.0.2.1', `Bearer ${index}`, never)
      failures.failed('192.0.2.1', `Bearer ${index}`)
      looked += 1
    } catch (error) {
      expect(error).toMatchObject({ code: 'rate_limit_exceeded', reached: { limit: 'address.failures' } })
      refused += 1
    }
    expect(failures.admit('192.0.2.1', 'Bearer good', never)).toBeUndefined()
    expect(failures.admit('192.0.2.2', `Bearer ${index}`, never)).toBeUndefined()
    expect(failures.admit('2001:db8::1', `Bearer ${index}`, never)).toBeUndefined()
  }
  expect(slept).toEqual([250, 500, 1000])
  expect([looked, refused]).toEqual([24, 276])
  expect(now()).toBe(1750)
})

test('after a while the address is like any other again', async () => {
  const { failures, pass } = failuresScene(2)
  for (let index = 0; index < 2; index++) failures.failed('192.0.2.1', String(index))
  failures.admit('192.0.2.1', 'a', never)
  expect(failures.admit('192.0.2.1', 'a', never)).toBeDefined()
  pass(120_000)
  expect(failures.admit('192.0.2.1', 'a', never)).toBeUndefined()
})

test('a key that was good at an address and is refused waits like any other', () => {
  const { failures } = failuresScene(1)
  failures.passed('192.0.2.1', 'revoked')
  failures.failed('192.0.2.1', 'revoked')
  failures.admit('192.0.2.1', 'revoked', never)
  expect(failures.admit('192.0.2.1', 'revoked', never)).toBeDefined()
})

test('all addresses of an IPv6 network fail together', () => {
  const { failures } = failuresScene(1)
  failures.failed('2001:db8::1', 'a')
  failures.admit('2001:db8::2', 'b', never)
  expect(failures.admit('2001:db8::3', 'c', never)).toBeDefined()
})
