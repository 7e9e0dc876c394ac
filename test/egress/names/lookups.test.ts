import { expect, test } from 'bun:test'
import { createLookups } from '../../../src/egress/names/lookups.ts'

const noSuchName = async () => {
  throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
}
const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}.example`)

test('a resolver that does not answer for records leaves room for addresses: regression', async () => {
  const hung = Promise.withResolvers<[]>()
  const lookups = createLookups(
    async () => ['1.2.3.4'],
    () => hung.promise,
  )
  const asked = names(200).map(name => lookups.records(name, 16))
  expect(await lookups.kindsOf('db.example')).toEqual({ found: { has4: true, has6: false } })
  hung.resolve([])
  const found = await Promise.all(asked)
  expect(found.filter(each => each !== 'failed').length).toBeGreaterThan(0)
})

test('names without addresses do not pile up at a resolver that does not answer: regression', async () => {
  const hung = Promise.withResolvers<[]>()
  let questions = 0
  const lookups = createLookups(noSuchName, () => {
    questions++
    return hung.promise
  })
  for (let round = 0; round < 2; round++) {
    const found = await Promise.all(names(60).map(name => lookups.kindsOf(`r${round}.${name}`)))
    expect(new Set(found)).toEqual(new Set(['no-such-name']))
  }
  hung.resolve([])
  await lookups.records('last.example', 16)
  expect(questions).toBeLessThanOrEqual(33)
})
