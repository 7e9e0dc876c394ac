import { expect, test } from 'bun:test'
import { createStartQueue } from '../../plugins/nsjail/start-queue.ts'
import { until } from '../support/until.ts'

test('so many start at once, the others in order as those end, well or not', async () => {
  const queue = createStartQueue(2)
  const begun: number[] = []
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<number>())
  const results = Promise.allSettled(
    ends.map(({ promise }, index) =>
      queue(() => {
        begun.push(index)
        return promise
      }),
    ),
  )
  expect(begun).toEqual([0, 1])
  ends[1]?.reject(new Error('it does not start'))
  await until(() => begun.length > 2)
  expect(begun).toEqual([0, 1, 2])
  for (const [index, { resolve }] of ends.entries()) resolve(index)
  expect(await results).toMatchObject([{ value: 0 }, { status: 'rejected' }, { value: 2 }, { value: 3 }, { value: 4 }])
  expect(begun).toEqual([0, 1, 2, 3, 4])
})

test('one that does not come up keeps no other from starting', async () => {
  const queue = createStartQueue(1)
  const stuck = Promise.withResolvers<string>()
  const first = queue(() => stuck.promise)
  expect(await queue(async () => 'second')).toBe('second')
  stuck.resolve('first after all')
  expect(await first).toBe('first after all')
})
