import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { expectError, SECRET } from '../support/errors.ts'
import { leftovers } from '../support/leftovers.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})

const user = (text: unknown) => ({ role: 'user', parts: [{ type: 'text', text }] })

/** Endpoint, bad body, and the field that its refusal names. */
const create = 'POST /v1/sandboxes'
const exec = 'POST /v1/sandboxes/:id/exec'
const write = 'POST /v1/sandboxes/:id/files'
const mkdir = 'POST /v1/sandboxes/:id/files/mkdir'
const rename = 'POST /v1/sandboxes/:id/files/rename'
const clone = 'POST /v1/sandboxes/:id/git/clone'
const threads = 'POST /v1/sandboxes/:id/threads'
const chat = 'POST /v1/chat/echo'
const tokens = 'POST /v1/tokens'

const wrongBodies: [string, unknown, string][] = [
  [create, {}, 'agent'],
  [create, { agent: 5 }, 'agent'],
  [create, { agent: null }, 'agent'],
  [create, { agent: [SECRET] }, 'agent'],
  [create, { agent: 'echo', files: [SECRET] }, 'files'],
  [create, { agent: 'echo', files: SECRET }, 'files'],
  [create, { agent: 'echo', files: null }, 'files'],
  [create, { agent: 'echo', files: { '/a': 5 } }, 'files'],
  [create, { agent: 'echo', files: { '/a': { content: SECRET } } }, 'files'],
  [create, { agent: 'echo', files: { relative: SECRET } }, 'files'],
  [create, { agent: 'echo', files: { '': SECRET } }, 'files'],
  [create, { agent: 'echo', files: { '/nul\0': SECRET } }, 'files'],
  [create, { agent: 'echo', envs: [SECRET] }, 'envs'],
  [create, { agent: 'echo', envs: { A: 5 } }, 'envs'],
  [create, { agent: 'echo', envs: { A: null } }, 'envs'],
  [create, { agent: 'echo', envs: { A: `${SECRET}\0` } }, 'envs'],
  [create, { agent: 'echo', envs: { 'A=B': SECRET } }, 'envs'],
  [create, { agent: 'echo', envs: { '': SECRET } }, 'envs'],
  [create, { agent: 'echo', setup: SECRET }, 'setup'],
  [create, { agent: 'echo', setup: { 0: SECRET } }, 'setup'],
  [create, { agent: 'echo', setup: [5] }, 'setup'],
  [create, { agent: 'echo', setup: [''] }, 'setup'],
  [create, { agent: 'echo', setup: [`${SECRET}\0`] }, 'setup'],
  [create, { agent: 'echo', timeoutMs: '5000' }, 'timeoutMs'],
  [create, { agent: 'echo', timeoutMs: 5000.5 }, 'timeoutMs'],
  [create, { agent: 'echo', timeoutMs: -1 }, 'timeoutMs'],
  [create, { agent: 'echo', timeoutMs: 1e300 }, 'timeoutMs'],

  [exec, {}, 'command'],
  [exec, { command: 5 }, 'command'],
  [exec, { command: '' }, 'command'],
  [exec, { command: null }, 'command'],
  [exec, { command: [SECRET] }, 'command'],
  [exec, { command: `echo ${SECRET}\0` }, 'command'],
  [exec, { command: `#${SECRET}${'x'.repeat(200_000)}` }, 'command'],
  [exec, { command: 'pwd', cwd: 5 }, 'cwd'],
  [exec, { command: 'pwd', cwd: '' }, 'cwd'],
  [exec, { command: 'pwd', cwd: SECRET }, 'cwd'],
  [exec, { command: 'pwd', cwd: `/${SECRET}\0` }, 'cwd'],
  [exec, { command: 'pwd', envs: [SECRET] }, 'envs'],
  [exec, { command: 'pwd', envs: SECRET }, 'envs'],
  [exec, { command: 'pwd', envs: { A: 1 } }, 'envs'],
  [exec, { command: 'pwd', envs: { 'A B': SECRET } }, 'envs'],
  [exec, { command: 'pwd', envs: { A: `\0${SECRET}` } }, 'envs'],
  [exec, { command: 'pwd', timeoutMs: '5' }, 'timeoutMs'],
  [exec, { command: 'pwd', timeoutMs: 0 }, 'timeoutMs'],
  [exec, { command: 'pwd', timeoutMs: -5 }, 'timeoutMs'],
  [exec, { command: 'pwd', timeoutMs: 1.5 }, 'timeoutMs'],
  [exec, { command: 'pwd', timeoutMs: 600_001 }, 'timeoutMs'],
  [exec, { command: 'pwd', timeoutMs: true }, 'timeoutMs'],
  [exec, { command: 'pwd', timeoutMs: null }, 'timeoutMs'],
  [exec, { command: 'pwd', timeoutMs: [5] }, 'timeoutMs'],

  [write, {}, 'files'],
  [write, { files: SECRET }, 'files'],
  [write, { files: null }, 'files'],
  [write, { files: [SECRET] }, 'files'],
  [write, { files: [{ path: '/a' }] }, 'files'],
  [write, { files: [{ content: SECRET }] }, 'files'],
  [write, { files: [{ path: '/a', content: 5 }] }, 'files'],
  [write, { files: [{ path: SECRET, content: '' }] }, 'path'],
  [write, { files: [{ path: `/\0${SECRET}`, content: '' }] }, 'path'],
  [
    write,
    {
      files: [
        { path: '/fine', content: '' },
        { path: 'no', content: '' },
      ],
    },
    'path',
  ],
  [write, { files: { [SECRET]: '' } }, 'path'],
  [write, { files: { '/a': 5 } }, 'files'],
  [write, { path: '/a' }, 'files'],
  [write, { path: SECRET, content: '' }, 'path'],
  [write, { path: `/${'x'.repeat(5000)}`, content: '' }, 'path'],

  [mkdir, {}, 'path'],
  [mkdir, { path: 5 }, 'path'],
  [mkdir, { path: SECRET }, 'path'],
  [mkdir, { path: `/${SECRET}\0` }, 'path'],
  [rename, { oldPath: '/a' }, 'newPath'],
  [rename, { newPath: '/a' }, 'oldPath'],
  [rename, { oldPath: SECRET, newPath: '/a' }, 'oldPath'],
  [rename, { oldPath: '/a', newPath: ['/b'] }, 'newPath'],

  [clone, {}, 'url'],
  [clone, { url: 5 }, 'url'],
  [clone, { url: '' }, 'url'],
  [clone, { url: `http://localhost/${SECRET}\n` }, 'url'],
  [clone, { url: 'http://localhost/x', path: SECRET }, 'path'],
  [clone, { url: 'http://localhost/x', token: 5 }, 'token'],
  [clone, { url: 'http://localhost/x', token: `${SECRET}\n` }, 'token'],
  [clone, { url: 'http://localhost/x', depth: '1' }, 'depth'],
  [clone, { url: 'http://localhost/x', depth: 0 }, 'depth'],
  [clone, { url: 'http://localhost/x', depth: 1.5 }, 'depth'],
  [clone, { url: 'http://localhost/x', branch: 5 }, 'branch'],

  [threads, { name: 5 }, 'name'],
  [threads, { name: [SECRET] }, 'name'],
  [threads, { name: 'x'.repeat(5000) }, 'name'],

  [chat, {}, 'messages'],
  [chat, { messages: [] }, 'messages'],
  [chat, { messages: SECRET }, 'messages'],
  [chat, { messages: { 0: user('a') } }, 'messages'],
  [chat, { messages: [SECRET] }, 'messages'],
  [chat, { messages: [null] }, 'messages'],
  [chat, { messages: [{ role: 'user' }] }, 'messages'],
  [chat, { messages: [{ role: 'user', parts: SECRET }] }, 'messages'],
  [chat, { messages: [{ role: 'user', parts: [SECRET] }] }, 'messages'],
  [chat, { messages: [{ role: 'user', parts: [{ text: SECRET }] }] }, 'messages'],
  [chat, { messages: [user(5)] }, 'messages'],
  [chat, { messages: [user(undefined)] }, 'messages'],
  [chat, { messages: [user(' \n')] }, 'messages'],
  [chat, { messages: [{ role: SECRET, parts: [] }] }, 'messages'],
  [chat, { messages: [{ role: 'assistant', parts: [{ type: 'text', text: 'a' }] }] }, 'messages'],
  [chat, { messages: [{ id: 5, ...user('a') }] }, 'messages'],
  [chat, { messages: [user('a')], sandboxId: 5 }, 'sandboxId'],
  [chat, { messages: [user('a')], sandboxId: null }, 'sandboxId'],
  [chat, { messages: [user('a')], threadId: 'thr_1' }, 'threadId'],
  [chat, { messages: [user('a')], threadId: 5, sandboxId: ':id' }, 'threadId'],
  [chat, { messages: [user('a')], name: 5 }, 'name'],
  [chat, { messages: [user('a')], options: SECRET }, 'options'],
  [chat, { messages: [user('a')], options: [SECRET] }, 'options'],
  [chat, { messages: [user('a')], options: { model: 5 } }, 'options'],
  [chat, { messages: [user('a')], options: { maxTurns: '5' } }, 'options'],
  [chat, { messages: [user('a')], options: { maxBudgetUsd: '5' } }, 'options'],
  [chat, { messages: [user('a')], options: { systemPrompt: 5 } }, 'options'],
  [chat, { messages: [user('a')], options: { disallowedTools: SECRET } }, 'options'],
  [chat, { messages: [user('a')], externalUserId: 5 }, 'externalUserId'],
  [chat, { messages: [user('a')], mode: 5 }, 'mode'],

  [tokens, { agents: 'echo' }, 'agents'],
  [tokens, { agents: [5] }, 'agents'],
  [tokens, { userId: 5 }, 'userId'],
  [tokens, { userId: '' }, 'userId'],
  [tokens, { expiresIn: 5 }, 'expiresIn'],
  [tokens, { expiresIn: SECRET }, 'expiresIn'],
]

const fill = (text: string) => text.replaceAll(':id', id)
const bodyEndpoints = [create, exec, write, mkdir, rename, clone, threads, chat, tokens]
const post = (endpoint: string, text: string | undefined, headers: Record<string, string> = {}) => {
  const [method = '', path = ''] = endpoint.split(' ')
  return app.ask(method, fill(path), undefined, {
    ...(text !== undefined && { body: Buffer.from(fill(text)) }),
    headers: { 'content-type': 'application/json', ...headers },
  })
}

describe('a wrong field is 400 and named', () => {
  for (const [endpoint, body, field] of wrongBodies) {
    test(`${endpoint} ${JSON.stringify(body).slice(0, 100)}`, async () => {
      const answer = await post(endpoint, JSON.stringify(body))
      expectError(answer)
      expect((answer.body.error.field as string)?.split('.')[0]).toBe(field)
      expect(answer.body.message).toStartWith(field)
    })
  }

  test('and none of these left anything', async () => {
    expect((await app.ask('GET', '/v1/sandboxes')).body.sandboxes.map((each: any) => each.id)).toEqual([id])
    expect(await leftovers(...app.environmentIds.slice(1))).toEqual([])
    expect((await app.ask('GET', `/v1/sandboxes/${id}/threads`)).body).toEqual([])
  })
})

test('a field whose name is a megabyte long is not repeated', async () => {
  const { status, body } = await post(exec, JSON.stringify({ command: 'pwd', envs: { ['='.repeat(1_000_000)]: '' } }))
  expect(status).toBe(400)
  expect(body.message).toStartWith('envs.=')
  expect(body.message.length).toBeLessThan(1000)
})

test('a large body is refused or ignored quickly, whatever it is large of', async () => {
  const larges = [
    `{"command":"true","x":[${Array(4_000_000).fill('1').join(',')}]}`,
    `{"command":"true","x":[${Array(2_000_000).fill('{}').join(',')}]}`,
    `{"command":"true","envs":{${Array.from({ length: 200_000 }, (_, n) => `"${n}":""`).join(',')}}}`,
  ]
  for (const text of larges) {
    const startMs = performance.now()
    expect((await post(exec, text)).status).toBeOneOf([200, 400])
    expect(performance.now() - startMs).toBeLessThan(10_000)
  }
})

describe('a body that is no object of JSON is 400', () => {
  const texts: [string, string][] = [
    ['cut JSON', `{"agent": "${SECRET}`],
    ['no JSON', SECRET],
    ['single quotes', `{'agent':'echo'}`],
    ['a form', `agent=echo&command=${SECRET}`],
    ['a string', JSON.stringify(SECRET)],
    ['a number', '5'],
    ['true', 'true'],
    ['an array', `["${SECRET}"]`],
    ['an empty array', '[]'],
    ['200,000 arrays in each other', '['.repeat(200_000) + ']'.repeat(200_000)],
    ['200,000 objects in each other', `${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`],
    ['bytes that are no text', '\u0000\u0001\ufffd'],
  ]
  for (const endpoint of bodyEndpoints) {
    for (const [name, text] of texts) {
      // Unknown fields are ignored, also deep ones.
      if (name.includes('objects') && [threads, tokens].includes(endpoint)) continue
      test(`${endpoint}: ${name}`, async () => expectError(await post(endpoint, text)))
    }
  }

  for (const endpoint of bodyEndpoints.filter(each => each !== threads && each !== tokens)) {
    test(`${endpoint}: none`, async () => {
      expectError(await post(endpoint, undefined))
      expectError(await post(endpoint, 'null'))
    })
  }

  test('deep values where a part may have any are taken, or refused well', async () => {
    const part = '{"type":"data-x","data":'.concat('['.repeat(200_000), ']'.repeat(200_000), '}')
    const answer = await post(
      chat,
      `{"sandboxId":":id","messages":[{"role":"user","parts":[{"type":"text","text":"a"},${part}]}]}`,
    )
    expectError(answer)
  })
})

describe('a JSON body is read whatever content type it says', () => {
  for (const type of [
    'APPLICATION/JSON',
    'application/json; charset=utf-8',
    'text/plain',
    'application/x-www-form-urlencoded',
    '',
  ]) {
    test(type || 'none', async () => {
      const { status, body } = await post(exec, '{"command":"echo 1"}', { 'content-type': type })
      expect({ status, stdout: body.stdout }).toEqual({ status: 200, stdout: '1\n' })
    })
  }
})

describe('a body over 10 MB is 413', () => {
  for (const endpoint of bodyEndpoints) {
    test(`${endpoint}, announced`, async () => {
      const text = JSON.stringify({ command: `${SECRET}${'x'.repeat(10 * 1024 * 1024)}` })
      expectError(await post(endpoint, text), { status: 413, code: 'payload_too_large' })
    })

    test(`${endpoint}, of no known length`, async () => {
      const [method = '', path = ''] = endpoint.split(' ')
      let sent = 0
      const stream = new ReadableStream<Uint8Array>({
        pull(controller) {
          controller.enqueue(Buffer.alloc(1024 * 1024, ' '))
          if (++sent === 20) controller.close()
        },
      })
      const answer = await app.ask(method, fill(path), undefined, { body: stream })
      expectError(answer, { status: 413, code: 'payload_too_large' })
    })
  }
})

test('nothing of all this was a fault of the server', () => {
  expect(app.log.filter(line => line.includes('error'))).toEqual([])
})
