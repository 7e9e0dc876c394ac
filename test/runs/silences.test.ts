import { expect, test } from 'bun:test'
import { createSilences } from '../../src/runs/silences.ts'
import { until } from '../support/until.ts'

test('one that is silent is told so again and again, and one that is given something is not', async () => {
  const silences = createSilences(15)
  const counts = { silent: 0, busy: 0 }
  const silent = silences.watch(() => void counts.silent++)
  const busy = silences.watch(() => void counts.busy++)
  const giving = setInterval(() => busy.break(), 0)
  await until(() => counts.silent > 3)
  clearInterval(giving)
  busy.end()
  // A slow machine may be late with the giving, but not as often as that.
  expect(counts.busy).toBeLessThan(counts.silent)
  silent.end()
  const { silent: before } = counts
  const other = silences.watch(() => void counts.busy++)
  await until(() => counts.busy > 2)
  other.end()
  expect(counts.silent).toBe(before)
})
