import { expect, test } from 'bun:test'
import { createShelf, type ShelvedConversation } from '../../../plugins/agent-programs/idle-conversations.ts'
import { until } from '../../support/until.ts'

/** A conversation whose program does nothing but end. */
function conversation(environmentId = 'env_1'): ShelvedConversation {
  const ended = Promise.withResolvers<string>()
  let isAlive = true
  const end = async () => {
    isAlive = false
    ended.resolve('It ended.')
  }
  return {
    ...{ environmentId, key: '', sessionId: 's', tellsCallsFirst: true },
    program: {
      get isAlive() {
        return isAlive
      },
      ...{ ended: ended.promise, onMessage: () => {}, send: () => {}, kill: end, end },
    },
    ask: async () => ({ status: 'completed' }),
    interrupt: () => {},
  }
}

test('a process that nobody takes is ended after a while, one that is taken is not', async () => {
  const shelf = createShelf(20)
  const [idle, taken] = [conversation(), conversation()]
  shelf.put('one', idle)
  shelf.put('two', taken)
  expect(shelf.take('two')).toBe(taken)
  await until(() => !idle.program.isAlive)
  expect([shelf.take('one'), taken.program.isAlive]).toEqual([undefined, true])
})

test('a process that ended by itself is not given out', async () => {
  const shelf = createShelf(60_000)
  const lost = conversation()
  shelf.put('one', lost)
  await lost.program.kill()
  expect(shelf.take('one')).toBeUndefined()
})

test('three wait in a sandbox, however many there are in others', async () => {
  const shelf = createShelf(60_000)
  const here = Array.from({ length: 5 }, () => conversation())
  const there = conversation('env_2')
  shelf.put('there', there)
  for (const [index, each] of here.entries()) shelf.put(`${index}`, each)
  expect([...here, there].map(({ program }) => program.isAlive)).toEqual([false, false, true, true, true, true])
  await shelf.close()
  expect([...here, there].filter(({ program }) => program.isAlive)).toEqual([])
})
