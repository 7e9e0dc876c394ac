import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { expectError } from '../support/errors.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})

const messages = [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }]
const post = (path: string, body: object) => app.ask('POST', path.replace(':id', id), body)

const create = '/v1/sandboxes'
const exec = '/v1/sandboxes/:id/exec'
const start = '/v1/sandboxes/:id/processes'
const chat = '/v1/chat/echo'

describe('a field that is close to a known one is refused with that', () => {
  const close: [string, object, string, string][] = [
    [create, { agent: 'echo', env: { A: '1' } }, 'env', 'envs'],
    [create, { agents: 'echo' }, 'agents', 'agent'],
    [create, { agent: 'echo', file: { '/a': '' } }, 'file', 'files'],
    [create, { agent: 'echo', timeout: 5000 }, 'timeout', 'timeoutMs'],
    [create, { agent: 'echo', timeout_ms: 5000 }, 'timeout_ms', 'timeoutMs'],
    [create, { agent: 'echo', network_allow_out: [] }, 'network_allow_out', 'networkAllowOut'],
    [create, { agent: 'echo', setpu: ['true'] }, 'setpu', 'setup'],
    [exec, { comand: 'true' }, 'comand', 'command'],
    [exec, { command: 'true', env: {} }, 'env', 'envs'],
    [exec, { command: 'true', timeout: '5' }, 'timeout', 'timeoutMs'],
    [start, { command: 'true', wait_for_reader: true }, 'wait_for_reader', 'waitForReader'],
    [start, { command: 'cat', pty: { colums: 80, rows: 24 } }, 'pty', 'pty'],
    [chat, { messages, sandbox_id: 'sbx_1' }, 'sandbox_id', 'sandboxId'],
    [chat, { messages, sandbox: 'sbx_1' }, 'sandbox', 'sandboxId'],
    [chat, { messages, option: {} }, 'option', 'options'],
    [chat, { messages, options: { maxTurn: 1 } }, 'options.maxTurn', 'maxTurns'],
    [chat, { messages, options: { maxBudget: 1 } }, 'options.maxBudget', 'maxBudgetUsd'],
    [chat, { messages: [{ role: 'user', part: [] }] }, 'messages.0.part', 'parts'],
    ['/v1/tokens', { agnets: ['echo'] }, 'agnets', 'agents'],
    ['/v1/tokens', { user: 'u1' }, 'user', 'userId'],
  ]
  for (const [path, body, field, meant] of close) {
    test(`${path}: ${field}`, async () => {
      const answer = await post(path, body)
      expectError(answer, { status: 400, code: 'invalid_request' })
      if (field === meant) return expect(answer.body.error.field).toStartWith(field)
      expect(answer.body.message).toBe(`${field}: not known here; did you mean ${meant}?`)
      expect(answer.body.error.field).toBe(field)
    })
  }
})

test('other unknown fields are ignored, as what clients send of their own', async () => {
  const own = { vaultIds: ['v'], model: 'm', messageId: 'm1', user: 'u', metadata: { env: 1 }, body: 'x', title: 't' }
  const answer = await app.request('POST', chat, { body: { ...own, sandboxId: id, messages } })
  expect(answer.status).toBe(200)
  await answer.text()
  expect((await post(exec, { command: 'true', envs: {}, env: {}, agent: 'x', stdin: 'y' })).status).toBe(200)
  const part = { type: 'text', text: 'a', txt: 'b', texts: 'c' }
  const parts = await app.request('POST', chat, {
    body: { sandboxId: id, messages: [{ role: 'user', parts: [part] }] },
  })
  expect(parts.status).toBe(200)
  await parts.text()
})

describe('a token is never wider than its request wants: regression', () => {
  for (const body of [
    { slug: 'echo' },
    { scopes: ['x'] },
    { agents: ['echo'], sandboxId: 'sbx_1' },
    { constructor: 1 },
  ]) {
    test(`${JSON.stringify(body)} is refused`, async () => {
      const answer = await post('/v1/tokens', body)
      expect(codeOf(answer)).toBe('400 invalid_request')
      expect(answer.body.message).toEndWith(': not known here; agents, agent, userId, approve, expiresIn are')
    })
  }

  test('for one agent by `agent`, as for a list by `agents`', async () => {
    app.agent('another')
    for (const body of [{ agent: 'echo' }, { agents: ['echo'] }]) {
      const { token } = (await post('/v1/tokens', body)).body
      const ask = (slug: string) => app.ask('POST', create, { agent: slug }, { key: token })
      expect(codeOf(await ask('another'))).toBe('403 forbidden')
      expect((await ask('echo')).status).toBe(201)
    }
    expect(codeOf(await post('/v1/tokens', { agent: 'echo', agents: ['another'] }))).toBe('400 invalid_request')
  })
})

describe("a chat in another API's form is answered with the right one", () => {
  const form = 'send "messages":[{"role":"user","parts":[{"type":"text","text":"Hello"}]}]'
  const wrong: [object, string][] = [
    [{ messages: [{ role: 'user', content: 'Hi' }] }, 'messages.0.content: a message has parts in place of content'],
    [
      { model: 'm', messages: [...messages, { role: 'user', content: [] }] },
      'messages.1.content: a message has parts in place of content',
    ],
    [{ prompt: 'Hi' }, 'messages: required'],
    [{ message: 'Hi' }, 'messages: required'],
  ]
  for (const [body, said] of wrong) {
    test(JSON.stringify(body), async () => {
      const answer = await post(chat, body)
      expectError(answer, { status: 400, code: 'invalid_request' })
      expect(answer.body.message).toBe(`${said}; ${form}`)
    })
  }

  test('while content beside parts, as older clients have it, is ignored', async () => {
    const answer = await app.request('POST', chat, {
      body: { sandboxId: id, messages: [{ content: 'a', ...messages[0] }] },
    })
    expect(answer.status).toBe(200)
    await answer.text()
  })
})
