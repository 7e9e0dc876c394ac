import { beforeAll, describe, expect, test } from 'bun:test'
import { createKey, createToken } from '../../src/core/access.ts'
import { listKeys, revokeKey } from '../../src/db/keys.ts'
import { findTeam } from '../../src/db/teams.ts'
import { useApp } from '../support/app.ts'

const app = useApp()
const message = { messages: [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }] }

/** Every endpoint, with a body that is good. */
const endpoints: [string, string, object?][] = [
  ['POST', '/v1/sandboxes', { agent: 'echo' }],
  ['GET', '/v1/sandboxes'],
  ['GET', '/v1/sandboxes/:id'],
  ['DELETE', '/v1/sandboxes/:id'],
  ['POST', '/v1/sandboxes/:id/exec', { command: 'true' }],
  ['POST', '/v1/sandboxes/:id/files', { path: '/a', content: '' }],
  ['GET', '/v1/sandboxes/:id/files?path=/a'],
  ['DELETE', '/v1/sandboxes/:id/files?path=/a'],
  ['GET', '/v1/sandboxes/:id/files/list?path=/'],
  ['GET', '/v1/sandboxes/:id/files/info?path=/'],
  ['GET', '/v1/sandboxes/:id/files/exists?path=/'],
  ['POST', '/v1/sandboxes/:id/files/mkdir', { path: '/a' }],
  ['POST', '/v1/sandboxes/:id/files/rename', { oldPath: '/a', newPath: '/b' }],
  ['POST', '/v1/sandboxes/:id/git/clone', { url: 'http://localhost/x' }],
  ['GET', '/v1/sandboxes/:id/threads'],
  ['POST', '/v1/sandboxes/:id/threads', {}],
  ['GET', '/v1/sandboxes/:id/threads/:thread'],
  ['DELETE', '/v1/sandboxes/:id/threads/:thread'],
  ['POST', '/v1/chat/echo', { sandboxId: ':id', ...message }],
  ['POST', '/v1/chat/echo', { sandboxId: ':id', threadId: ':thread', ...message }],
  ['GET', '/v1/chat/echo/:id/stream'],
  ['DELETE', '/v1/chat/echo/:id/stream'],
  ['POST', '/v1/tokens', {}],
]

let id = ''
let environmentId = ''
let thread = ''
beforeAll(async () => {
  const { body } = await app.ask('POST', '/v1/sandboxes', { agent: 'echo' })
  ;({ id, sandboxId: environmentId } = body)
  thread = (await app.ask('POST', `/v1/sandboxes/${id}/threads`, {})).body.id
})
const fill = <Value extends string | object>(value: Value, ids: { id: string; thread: string }): Value =>
  JSON.parse(JSON.stringify(value).replaceAll(':id', ids.id).replaceAll(':thread', ids.thread))

describe('401', () => {
  const authorizations: [string, string | undefined][] = [
    ['none', undefined],
    ['empty', ''],
    ['only Bearer', 'Bearer '],
    ['another scheme', 'Basic dGJ4OnRieA=='],
    ['two words', 'Bearer a b'],
    ['an unknown key', `Bearer tbx_${'a'.repeat(40)}`],
    ['a key without its prefix', 'Bearer x'],
    ['an unknown token', 'Bearer tbt_e30.abc'],
    ['a token without a signature', 'Bearer tbt_e30'],
    ['a token with an odd body', 'Bearer tbt_%%%.%%%'],
    ['only a token’s prefix', 'Bearer tbt_'],
  ]
  for (const [name, authorization] of authorizations) {
    test(`for ${name} on every endpoint, before anything of the request is looked at`, async () => {
      const headers = authorization === undefined ? {} : { authorization }
      for (const [method, path, body] of [...endpoints, ['GET', '/v1/nothing'], ['PUT', '/v1/sandboxes']] as const) {
        const answer = await app.ask(method, fill(path, { id, thread }), body && fill(body, { id, thread }), {
          key: null,
          headers,
        })
        expect({ path, status: answer.status, code: answer.body.error?.code }).toEqual({
          path,
          status: 401,
          code: 'unauthorized',
        })
        expect(Object.keys(answer.body).sort()).toEqual(['error', 'message'])
      }
    })
  }

  test('in words that never repeat the key', async () => {
    const key = `tbx_${crypto.randomUUID()}`
    expect(JSON.stringify((await app.ask('GET', '/v1/sandboxes', undefined, { key })).body)).not.toContain(key)
  })

  test('for a key that has expired', async () => {
    const { key } = app.beside(db =>
      createKey(db, { team: 'default', name: 'old', expiresAt: new Date(Date.now() - 1).toISOString() }),
    )
    const { status, body } = await app.ask('GET', '/v1/sandboxes', undefined, { key })
    expect({ status, code: body.error.code }).toEqual({ status: 401, code: 'unauthorized' })
    expect(body.message).toContain('expired')
  })
})

test('no host or query makes another path open than the one that is asked for: regression', async () => {
  const { port } = new URL(app.url)
  const requests: [string, string, number][] = [
    ['/health?x=/v1/openapi.json', 'a', 200],
    ['/health?x=/v1/sandboxes', 'a', 200],
    ['/health?x=/v1/sandboxes', 'abc', 200],
    ['/health', 'a', 200],
    ['/v1/openapi.json', 'a', 401],
    ['/v1/openapi.json', 'a/health?', 400],
    ['/v1/openapi.json', '[[[', 400],
    ['http://a/health?/v1/openapi.json', 'b', 200],
  ]
  for (const [target, host, status] of requests) {
    const lines = Promise.withResolvers<string>()
    await Bun.connect({
      hostname: 'localhost',
      port: Number(port),
      socket: {
        open: socket => void socket.write(`GET ${target} HTTP/1.1\r\nhost: ${host}\r\n\r\n`),
        data(socket, bytes) {
          lines.resolve(bytes.toString())
          socket.end()
        },
      },
    })
    const answer = await lines.promise
    expect({ target, host, status: Number(answer.slice(9, 12)) }).toEqual({ target, host, status })
    expect(answer).not.toContain('openapi')
  }
  expect(app.log.join('')).not.toContain('error')
})

test('a host of one letter is one: regression', async () => {
  const headers = { host: 'a' }
  const { status } = await app.ask('POST', `/v1/sandboxes/${id}/files/mkdir`, { path: '/home/user/short' }, { headers })
  expect(status).toBe(200)
})

test('401 for a token that has expired', async () => {
  const team = app.beside(db => findTeam(db, 'default'))!
  const { token } = createToken(app.runtime, { teamId: team.id }, { lifetimeMs: -1000 })
  const { status, body } = await app.ask('GET', '/v1/sandboxes', undefined, { key: token })
  expect({ status, code: body.error.code, message: body.message }).toEqual({
    status: 401,
    code: 'unauthorized',
    message: 'The token has expired.',
  })
})

test('the scheme’s name may be in any case', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    const headers = { authorization: `${scheme} ${app.key}` }
    expect((await app.request('GET', '/v1/sandboxes', { key: null, headers })).status).toBe(200)
  }
})

test('/health needs no key, and says nothing of secrets', async () => {
  const { status, body } = await app.ask('GET', '/health', undefined, { key: null })
  expect({ status, body }).toEqual({ status: 200, body: { status: 'ok', version: expect.any(String) } })
})

test('a token ends with the key that made it: regression', async () => {
  const { key, row } = app.beside(db => createKey(db, { team: 'default', name: 'short' }))
  const { token } = (await app.ask('POST', '/v1/tokens', {}, { key })).body
  expect((await app.ask('GET', '/v1/sandboxes', undefined, { key: token })).status).toBe(200)
  app.beside(db => revokeKey(db, row.id))
  expect((await app.ask('GET', '/v1/sandboxes', undefined, { key: token })).status).toBe(401)
})

test('a key that another process makes or revokes counts at once', async () => {
  const { key, row } = app.beside(db => createKey(db, { team: 'default', name: 'new' }))
  const status = async () => (await app.ask('GET', '/v1/sandboxes', undefined, { key })).status
  expect(await status()).toBe(200)
  app.beside(db => revokeKey(db, row.id))
  expect(await status()).toBe(401)
})

test('the database has only hashes of keys', async () => {
  const stored = app.beside(db => JSON.stringify([listKeys(db), db.query('select * from api_keys').all()]))
  expect(stored).not.toContain(app.key)
  expect(stored).not.toContain(app.key.slice(4))
})

describe('another team', () => {
  const foreign = (method: string, path: string, body?: unknown) => app.ask(method, path, body, { key: app.foreignKey })

  test('lists none of it', async () => {
    expect((await foreign('GET', '/v1/sandboxes')).body.sandboxes).toEqual([])
  })

  test('does not know its agents', async () => {
    app.agent('private')
    const known = await foreign('POST', '/v1/sandboxes', { agent: 'private' })
    expect({ status: known.status, code: known.body.error.code }).toEqual({ status: 404, code: 'agent_not_found' })
  })

  const unknown = { id: 'sbx_01a1fc99-2ff3-76f4-aa4b-684e48d176d8', thread: 'thr_01a1fc99-2ff3-76f4-aa4b-684e48d176d8' }
  const malformed = { id: 'x', thread: 'x' }
  for (const [method, path, body] of endpoints.filter(endpoint => JSON.stringify(endpoint).includes(':id'))) {
    test(`gets the very answer for it that unknown and malformed ids get: ${method} ${path}`, async () => {
      const answers = await Promise.all(
        [{ id, thread }, { id: environmentId, thread }, unknown, malformed].map(async ids => {
          const { status, body: said } = await foreign(method, fill(path, ids), body && fill(body, ids))
          return JSON.stringify({ status, said })
        }),
      )
      expect(new Set(answers).size).toBe(1)
      expect(JSON.parse(answers[0]!)).toMatchObject({ status: 404, said: { error: { code: 'sandbox_not_found' } } })
    })
  }

  test('gets nothing by naming a thread of it in a sandbox of its own', async () => {
    const own = (await foreign('POST', '/v1/sandboxes', { agent: 'echo' })).body.id
    const answers = await Promise.all(
      [thread, unknown.thread, 'x'].map(async each => {
        const { status, body } = await foreign('GET', `/v1/sandboxes/${own}/threads/${each}`)
        return JSON.stringify({ status, body })
      }),
    )
    expect(new Set(answers).size).toBe(1)
    expect(JSON.parse(answers[0]!)).toMatchObject({ status: 404, body: { error: { code: 'thread_not_found' } } })
  })

  test('has changed nothing of it', async () => {
    expect((await app.ask('GET', `/v1/sandboxes/${id}`)).body.threads).toEqual([
      { id: thread, name: null, status: 'active' },
    ])
    expect((await app.exec(id, 'ls /a /b 2>/dev/null')).stdout).toBe('')
  })
})

describe('the key of the configuration', () => {
  const configured = useApp(['--api-key', 'a-key-for-automation'])

  test('is one more key of the team default', async () => {
    const { status } = await configured.ask('GET', '/v1/sandboxes', undefined, { key: 'a-key-for-automation' })
    expect(status).toBe(200)
    expect((await configured.ask('GET', '/v1/sandboxes')).status).toBe(200)
    expect((await configured.ask('GET', '/v1/sandboxes', undefined, { key: 'a-key-for-automatioN' })).status).toBe(401)
  })
})
