import { expect, test } from 'bun:test'
import { useDurability } from '../../src/db/lasting.ts'
import { useApp } from '../support/app.ts'
import { chat } from '../support/chat.ts'

const app = useApp(['--durability', 'full'])

test('with full durability no answer has what is not on the disk', async () => {
  const { sandboxId, threadId } = (await chat(app, 'hello')) as any
  const begun = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  useDurability(app.runtime.db, 'full', async () => {
    begun.resolve()
    await go.promise
  })
  app.runtime.db.run("update threads set name = 'not there yet'")
  const paths = [`/v1/sandboxes/${sandboxId}/threads/${threadId}`, '/v1/threads', '/v1/runs']
  let answered = 0
  const answers = paths.map(async path => {
    const { body } = await app.ask('GET', path)
    answered += 1
    return JSON.stringify(body)
  })
  await begun.promise
  // What needs no database, or came before, is not held up.
  expect((await fetch(`${app.url}/health`)).status).toBe(200)
  expect(answered).toBe(0)
  go.resolve()
  expect((await Promise.all(answers)).filter(text => text.includes('not there yet'))).toHaveLength(2)
})
