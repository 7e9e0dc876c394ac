import { expect, test } from 'bun:test'
import { patiently } from '../support/server.ts'
import { loseMachine } from './lose-machine.ts'

patiently()

test('of a machine that is lost under load, Litestream’s replica and the key file keep all but the last seconds', async () => {
  const { lostMs, chats, kept, generations } = await loseMachine(3000)
  expect(chats).toBeGreaterThan(0)
  expect(kept).toBeGreaterThan(0)
  // The recipe says three seconds. A busy machine writes the replica later.
  expect(lostMs).toBeLessThan(10_000)
  expect(generations).toBe(1)
})
