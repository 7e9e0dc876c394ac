import { expect, test } from 'bun:test'
import { AnClient as Client003 } from '21st-sdk-node-0.0.3'
import { AnClient as Client011 } from '21st-sdk-node-0.1.1'
import { createKey } from '../../src/core/access/keys.ts'
import { saveKeyLimits } from '../../src/db/keys.ts'
import { headlessChat } from '../clients/headless-chat.ts'
import { versions } from '../clients/versions.ts'
import { useApp } from '../support/app.ts'

const app = useApp(['--spares', '0'])

/** A key that has sent what it may send. */
async function refusedKey(): Promise<{ key: string; lift: () => void }> {
  const limits = { 'key.requests': '1/h' }
  const { key, row } = createKey(app.runtime.db, { team: 'default', name: 'limited', limits })
  await app.request('GET', '/v1/me', { key })
  return { key, lift: () => app.beside(db => saveKeyLimits(db, row.id, {})) }
}

const words = /This API key may send 1\/h requests; try again in \d+ s\./

test.each(versions)('a chat of ai $version shows the refusal, and its message can be sent again', async ({ ai }) => {
  const { key, lift } = await refusedKey()
  const chat = headlessChat(ai, { api: `${app.url}/v1/chat/echo`, key })
  await chat.sendMessage({ text: 'hello' })
  expect(chat.status).toBe('error')
  expect(chat.error?.message).toMatch(words)
  expect(chat.messages.map(({ role }) => role)).toEqual(['user'])
  lift()
  await chat.regenerate()
  expect([chat.status, chat.error]).toEqual(['ready', undefined])
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
})

test.each([
  { version: '0.0.3', Client: Client003 },
  { version: '0.1.1', Client: Client011 },
])('@21st-sdk/node $version throws the message of the refusal', async ({ Client }) => {
  const { key, lift } = await refusedKey()
  const client = new Client({ apiKey: key, baseUrl: app.url })
  await expect(client.sandboxes.create({ agent: 'echo' })).rejects.toThrow(words)
  lift()
  expect((await client.sandboxes.create({ agent: 'echo' })).status).toBe('active')
})
