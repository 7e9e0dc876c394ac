import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { createFailures } from '../../src/core/limits/failures.ts'
import { createLimits } from '../../src/core/limits/limits.ts'
import { defaultLimits } from '../../src/core/limits/parse.ts'

const never = new AbortController().signal

test('fifty thousand addresses more take no more memory', () => {
  const failures = createFailures({ count: 20, periodMs: 60_000 })
  // The key has no room for so many requests; the addresses are what counts here.
  const limits = createLimits({ ...defaultLimits(), 'key.requests': { count: 0, periodMs: 0 } })
  const come = (from: number, to: number) => {
    for (let index = from; index < to; index++) {
      const address = `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`
      void failures.admit(address, String(index), never)
      failures.failed(address, String(index))
      failures.passed(address, String(index))
      limits.request({ teamId: 't', keyId: 'k', request: { address } })
      limits.open('streams', { teamId: 't', keyId: 'k', request: { address } })[Symbol.dispose]()
    }
    Bun.gc(true)
    return heapStats().heapSize
  }
  const before = come(0, 50_000)
  const after = come(50_000, 100_000)
  expect(after - before).toBeLessThan(10 * 1024 * 1024)
})
