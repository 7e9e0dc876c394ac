import { expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { revokeKey } from '../../src/db/keys.ts'
import { useApp } from '../support/app.ts'
import { say } from '../support/chat.ts'
import { processesNamed } from '../support/leftovers.ts'
import { until } from '../support/until.ts'

const app = useApp()

/** What a key reads for as long as it is let. */
const answers: [string, (sandboxId: string) => [string, string, object?, Record<string, string>?]][] = [
  ['a chat', id => ['POST', '/v1/chat/echo', { sandboxId: id, messages: [say('/slow 100000')] }]],
  [
    'the output of a command',
    id => [
      'POST',
      `/v1/sandboxes/${id}/exec`,
      { command: 'while sleep 0.1; do echo revoked-1; done' },
      { accept: 'text/event-stream' },
    ],
  ],
  ['events', () => ['GET', '/v1/events']],
]

test.each(answers)('%s ends when its key is revoked: regression', async (_, requestOf) => {
  const id = await app.sandbox()
  const { key, row } = createKey(app.runtime.db, { team: 'default', name: 'short' })
  const [method, path, body, headers] = requestOf(id)
  const response = await app.request(method, path, { key, ...(body && { body }), ...(headers && { headers }) })
  expect(response.status).toBe(200)
  const reader = response.body!.getReader()
  await reader.read()
  revokeKey(app.runtime.db, row.id)
  for (;;) {
    const { done } = await reader.read().catch(() => ({ done: true }))
    if (done) break
  }
  await until(() => processesNamed('revoked-1').length === 0)
})

test('a download ends, and is seen to be cut: regression', async () => {
  const id = await app.sandbox()
  await app.exec(id, 'head -c 400000000 /dev/zero > big')
  const { key, row } = createKey(app.runtime.db, { team: 'default', name: 'short' })
  const path = `/v1/sandboxes/${id}/files?path=/home/user/big&format=stream`
  const response = await app.request('GET', path, { key })
  const reader = response.body!.getReader()
  await reader.read()
  revokeKey(app.runtime.db, row.id)
  await expect(
    (async () => {
      // A reader as slow as a line of 20 MB a second.
      for (let bytes = 0; bytes < 400_000_000; ) {
        const { done, value } = await reader.read()
        if (done) throw new Error('the download was short, and ended well')
        bytes += value.byteLength
        await Bun.sleep(value.byteLength / 20_000)
      }
    })(),
  ).rejects.not.toThrow('ended well')
})
