import { expect, test } from 'bun:test'
import { createIdleConversations, type IdleConversation } from '../../../plugins/agent-programs/idle-conversations.ts'
import { until } from '../../support/until.ts'

/** A conversation whose program does nothing but end. */
function conversation(environmentId = 'env_1'): IdleConversation {
  const ended = Promise.withResolvers<string>()
  let isAlive = true
  const end = async () => {
    isAlive = false
    ended.resolve('It ended.')
  }
  return {
    ...{ environmentId, key: '', sessionId: 's', announcesCalls: true },
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
  const kept = createIdleConversations(20)
  const [idle, taken] = [conversation(), conversation()]
  kept.put('one', idle)
  kept.put('two', taken)
  expect(kept.take('two')).toBe(taken)
  await until(() => !idle.program.isAlive)
  expect([kept.take('one'), taken.program.isAlive]).toEqual([undefined, true])
})

test('a process that ended by itself is not given out', async () => {
  const kept = createIdleConversations(60_000)
  const lost = conversation()
  kept.put('one', lost)
  await lost.program.kill()
  expect(kept.take('one')).toBeUndefined()
})

test('three wait in a sandbox, however many there are in others', async () => {
  const kept = createIdleConversations(60_000)
  const here = Array.from({ length: 5 }, () => conversation())
  const there = conversation('env_2')
  kept.put('there', there)
  for (const [index, each] of here.entries()) kept.put(`${index}`, each)
  expect([...here, there].map(({ program }) => program.isAlive)).toEqual([false, false, true, true, true, true])
  await kept.close()
  expect([...here, there].filter(({ program }) => program.isAlive)).toEqual([])
})
