import { expect, test } from 'bun:test'
import type { Gateway } from '../../src/gateway/gateway.ts'
import type { Inside } from '../../src/gateway/run.ts'
import { cleanUpAfterEach } from '../runs/support.ts'
import { gatewayScene } from './support.ts'

cleanUpAfterEach()

const relay: Inside = { environmentId: 'env_1', via: 'relay' }
const publicly: Inside = { environmentId: 'env_1', via: 'public' }

const rows: [string, Inside, Parameters<Gateway['handle']>[1], number][] = [
  ['its own environment', relay, { environmentId: 'env_1' }, 200],
  ['another environment', relay, { environmentId: 'env_2' }, 401],
  ['the public URL, of a run that has a relay', relay, 'public', 401],
  ['the public URL', publicly, 'public', 200],
  ['a relay, of a run that has the public URL', publicly, { environmentId: 'env_1' }, 401],
  ['the server itself', publicly, undefined, 200],
]

test.each(rows)('a token shown by %s: regression', async (_, inside, from, status) => {
  const { open, gateway } = gatewayScene()
  const { access } = open({ inside })
  const request = new Request('http://gateway/gateway/anthropic/v1/messages', {
    method: 'POST',
    headers: { 'x-api-key': access.token },
    body: JSON.stringify({ model: access.id, max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }),
  })
  let isAdmitted = false
  const answer = await gateway.handle(request, from, () => {
    isAdmitted = true
  })
  expect([answer.status, isAdmitted]).toEqual([status, status === 200])
})

test('without a public URL an engine inside is told what is missing', () => {
  const { access } = gatewayScene().open({ inside: publicly })
  expect(() => access.insideBaseUrl).toThrow('--public-url')
})
