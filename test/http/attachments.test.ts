import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { chat, contents, say, threadOf } from '../support/chat.ts'
import { allWires, startModelServer } from '../support/model-server.ts'
import { readChunks } from '../support/sse.ts'

const model = startModelServer()
afterAll(() => model.stop())
const access = model.access('anthropic')
const wired = Object.fromEntries(allWires.map(wire => [wire, { wire, baseUrl: access.baseUrl, keyEnv: 'FAKE_KEY' }]))
const app = useApp(['--providers', JSON.stringify(wired)], { FAKE_KEY: 'sk-fake-key' })
beforeAll(() => {
  for (const wire of allWires) app.agent(wire, {}, { engine: 'ai-sdk', model: `${wire}/m` })
})

const file = (filename: string, mediaType: string, content: string | Buffer) => ({
  ...{ type: 'file', filename, mediaType },
  url: `data:${mediaType};base64,${Buffer.from(content).toString('base64')}`,
})
const pdf = '%PDF-1.4 a small one'

async function ask(agent: string, parts: object[], ids: object = {}) {
  model.requests.length = 0
  const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'See.' }, ...parts] }]
  const response = await app.request('POST', `/v1/chat/${agent}`, { body: { messages, ...ids } })
  const header = (name: string) => response.headers.get(name) ?? ''
  const chunks = await readChunks(response)
  const given = JSON.stringify(model.requests[0]?.body)
  return { chunks, given, sandboxId: header('x-sandbox-id'), threadId: header('x-thread-id') }
}

describe.each([...allWires])('what is attached, on %s', wire => {
  test('is told as text where it is one, also in the next turn, and stays as it was in the thread', async () => {
    const part = file('notes.md', 'text/markdown', 'the word is Zanzibar')
    const { given, chunks, ...ids } = await ask(wire, [part])
    expect(given).toContain('the word is Zanzibar')
    expect(given).toContain('notes.md')
    expect(chunks.some(({ type }) => type === 'data-notice')).toBe(false)
    expect((await threadOf(app, ids)).messages[0].parts[1]).toEqual(part)
    model.requests.length = 0
    await readChunks(await app.request('POST', `/v1/chat/${wire}`, { body: { messages: [say('And?')], ...ids } }))
    expect(JSON.stringify(model.requests[0]?.body)).toContain('the word is Zanzibar')
  })

  test('is written into the sandbox and named where it is long or no text', async () => {
    const long = file('../../etc/long.csv', 'text/csv', 'row,1\n'.repeat(20_000))
    const { given, sandboxId } = await ask(wire, [
      long,
      file('a.zip', 'application/zip', Buffer.from([80, 75, 3, 255])),
    ])
    expect(given).not.toContain('row,1')
    for (const name of ['long.csv', 'a.zip']) expect(given).toContain(`/home/user/attachments/m1/${name}`)
    expect(await app.shell(sandboxId, 'cd attachments/m1; wc -c long.csv a.zip')).toContain('120000 long.csv')
  })

  test('is a PDF to the model that takes one, and a file for any', async () => {
    const part = file('paper.pdf', 'application/pdf', pdf)
    const { given, sandboxId } = await ask(wire, [part])
    expect(given.includes(Buffer.from(pdf).toString('base64'))).toBe(wire !== 'openai-chat')
    expect(await app.shell(sandboxId, 'cat attachments/m1/paper.pdf')).toBe(pdf)
  })

  test('is told by a notice where it cannot be given, and no address is fetched', async () => {
    const { given, chunks } = await ask(wire, [
      { type: 'file', filename: 'far.txt', mediaType: 'text/plain', url: 'http://169.254.169.254/secret' },
    ])
    const [notice] = chunks.filter(({ type }) => type === 'data-notice')
    expect(notice.data).toMatchObject({ code: 'attachment_left_out', text: expect.stringContaining('far.txt') })
    expect([given.includes('169.254'), given.includes('could not be read')]).toEqual([false, true])
  })
})

test('user messages that the thread lacks, as after a 409, are taken in and answered', async () => {
  const first = await chat(app, '', { messages: [say('one', 'u1')] })
  const shown = { id: 'a-of-client', role: 'assistant', parts: [{ type: 'text', text: 'one' }] }
  const messages = [say('one', 'u1'), shown, say('refused', 'u2'), say('three', 'u3')]
  const { sandboxId, threadId } = first
  await chat(app, '', { sandboxId, threadId, messages })
  await chat(app, '', { sandboxId, threadId, messages: [...messages, shown, say('four', 'u4')] })
  const [, , ...later] = await contents(app, first)
  expect(later.filter(line => line.startsWith('user'))).toEqual(['user: refused', 'user: three', 'user: four'])
})
