import { expect, test } from 'bun:test'
import { createTurns } from '../../src/async/turns.ts'
import { createKey } from '../../src/core/access/keys.ts'
import { createContext, type RequestContext } from '../../src/http/context.ts'
import { takeTurns } from '../../src/http/steps/take-turns.ts'
import { useApp } from '../support/app.ts'

const app = useApp(['--limit', 'key.requests=50/h'])

test("a flood of one key is refused above its limit, and another key's requests all succeed meanwhile", async () => {
  const flooding = createKey(app.runtime.db, { team: 'default', name: 'flooding' }).key
  const list = async (key: string) => (await app.request('GET', '/v1/sandboxes', { key })).status
  const flood = Promise.all(Array.from({ length: 400 }, () => list(flooding)))
  const others: number[] = []
  for (let count = 0; count < 40; count++) others.push(await list(app.key))
  expect(others).toEqual(Array.from({ length: 40 }, () => 200))
  const answers = await flood
  expect(answers.filter(status => status === 200).length).toBe(50)
  expect(answers.filter(status => status === 429).length).toBe(350)
})

/** Requests that all come in one turn of the event loop. Returns the order in which they begin. */
async function orderOf(requests: readonly { key: string; credential?: string; address?: string }[]): Promise<string[]> {
  const step = takeTurns({ turn: createTurns().next })
  const order: string[] = []
  const send = ({ key, credential = key, address }: (typeof requests)[number]) => {
    const request = new Request('http://localhost/v1/sandboxes', { headers: { authorization: `Bearer ${credential}` } })
    const context: RequestContext = createContext(request, request, { address })
    return step(context, async () => {
      order.push(key)
      // As admission does for a good one.
      if (key !== 'wrong') context.admission = { caller: { teamId: 't', keyId: key }, isValid: () => true }
      return new Response()
    })
  }
  // Their credentials were good before.
  for (const each of requests) if (each.key !== 'wrong') await send(each)
  order.length = 0
  await Promise.all(requests.map(send))
  return order
}

test('of hundreds that come at once the first begins at once, and the one of another key is the next but one: regression', async () => {
  const flood = Array.from({ length: 200 }, () => ({ key: 'flooding' }))
  const order = await orderOf([...flood, { key: 'other' }])
  expect(order.length).toBe(201)
  expect(order.indexOf('other')).toBeLessThan(3)
})

test('tokens of one key wait for each other, wrong keys for all of their address', async () => {
  const tokens = Array.from({ length: 200 }, (_, index) => ({ key: 'flooding', credential: `token ${index}` }))
  expect((await orderOf([...tokens, { key: 'other' }])).indexOf('other')).toBeLessThan(3)
  const wrong = Array.from({ length: 200 }, (_, index) => ({
    key: 'wrong',
    credential: `${index}`,
    address: '192.0.2.1',
  }))
  expect((await orderOf([...wrong, { key: 'other', address: '192.0.2.1' }])).indexOf('other')).toBeLessThan(3)
})
