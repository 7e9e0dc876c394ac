import { beforeAll, describe, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { createToken } from '../../src/core/access/tokens.ts'
import { listKeys, revokeKey } from '../../src/db/keys.ts'
import { findTeam } from '../../src/db/teams.ts'
import { useApp } from '../support/app.ts'

// Each wrong key of these tests is one too many for one address.
const app = useApp(['--limit', 'address.failures=0'])
const message = { messages: [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }] }

/** Every endpoint, with a body that is good. */
const endpoints: [string, string, object?][] = [
  ['POST', '/v1/sandboxes', { agent: 'echo' }],
  ['GET', '/v1/sandboxes'],
  ['GET', '/v1/sandboxes/:id'],
  ['DELETE', '/v1/sandboxes/:id'],
  ['GET', '/v1/sandboxes/:id/network/decisions'],
  ['GET', '/v1/sandboxes/:id/stats'],
  ['POST', '/v1/sandboxes/:id/stop'],
  ['POST', '/v1/sandboxes/:id/snapshots', {}],
  ['GET', '/v1/sandboxes/:id/snapshots'],
  ['POST', '/v1/sandboxes/:id/fork', {}],
  ['GET', '/v1/snapshots'],
  ['DELETE', '/v1/snapshots/1'],
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
  ['PATCH', '/v1/sandboxes/:id/threads/:thread', {}],
  ['GET', '/v1/sandboxes/:id/threads/:thread/branches'],
  ['GET', '/v1/sandboxes/:id/threads/:thread/queue'],
  ['POST', '/v1/sandboxes/:id/threads/:thread/queue/resume'],
  ['DELETE', '/v1/sandboxes/:id/threads/:thread/queue/1'],
  ['POST', '/v1/chat/echo', { sandboxId: ':id', ...message }],
  ['POST', '/v1/chat/echo', { sandboxId: ':id', threadId: ':thread', ...message }],
  ['GET', '/v1/chat/echo/:id/stream'],
  ['DELETE', '/v1/chat/echo/:id/stream'],
  ['GET', '/v1/sandboxes/:id/threads/:thread/messages'],
  ['POST', '/v1/sandboxes/:id/threads/:thread/fork', { messageId: '1' }],
  ['GET', '/v1/runs'],
  ['GET', '/v1/runs/1'],
  ['GET', '/v1/runs/1/events'],
  ['GET', '/v1/approvals'],
  ['GET', '/v1/approvals/1'],
  ['POST', '/v1/approvals/1', { approved: true }],
  ['POST', '/v1/sandboxes/:id/threads/:thread/tool-results', { toolCallId: '1', output: 1 }],
  ['POST', '/v1/tokens', {}],
  ['PATCH', '/v1/sandboxes/:id', {}],
  ['POST', '/v1/sandboxes/:id/processes', { command: 'true' }],
  ['GET', '/v1/sandboxes/:id/processes'],
  ['GET', '/v1/sandboxes/:id/processes/1'],
  ['GET', '/v1/sandboxes/:id/processes/1/output'],
  ['GET', '/v1/sandboxes/:id/processes/1/terminal'],
  ['POST', '/v1/sandboxes/:id/processes/1/stdin', { data: 'x' }],
  ['POST', '/v1/sandboxes/:id/processes/1/signal', { signal: 'TERM' }],
  ['POST', '/v1/sandboxes/:id/processes/1/resize', { columns: 80, rows: 24 }],
  ['DELETE', '/v1/sandboxes/:id/processes/1'],
  ['POST', '/v1/sandboxes/:id/ports/1/link', {}],
  ['GET', '/v1/sandboxes/:id/ports/1/'],
  ['GET', '/v1/sandboxes/:id/ports/1/a'],
  ['PUT', '/v1/sandboxes/:id/ports/1/a/b', {}],
  ['GET', '/v1/threads'],
  ['GET', '/v1/secrets'],
  ['PUT', '/v1/secrets/A', { value: 'abcd' }],
  ['DELETE', '/v1/secrets/A'],
  ['POST', '/v1/webhooks', { url: 'https://example.com', events: ['run.ended'] }],
  ['GET', '/v1/webhooks'],
  ['GET', '/v1/webhooks/1'],
  ['PATCH', '/v1/webhooks/1', {}],
  ['DELETE', '/v1/webhooks/1'],
  ['GET', '/v1/webhooks/1/deliveries'],
  ['POST', '/v1/webhooks/1/deliveries/1/redeliver'],
  ['POST', '/v1/schedules', { cron: '@daily', agent: 'echo', prompt: 'a', paused: true }],
  ['GET', '/v1/schedules'],
  ['GET', '/v1/schedules/1'],
  ['PATCH', '/v1/schedules/1', {}],
  ['DELETE', '/v1/schedules/1'],
  ['POST', '/v1/schedules/1/run'],
  ['GET', '/v1/schedules/1/runs'],
  ['GET', '/v1/audit'],
  ['GET', '/v1/usage'],
  ['GET', '/v1/budgets'],
  ['GET', '/v1/events'],
  ['POST', '/v1/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }],
  ['DELETE', '/v1/mcp'],
  ['GET', '/v1/server'],
  ['GET', '/v1/server/checks'],
  ['GET', '/v1/server/selftest'],
  ['GET', '/v1/session'],
  ['DELETE', '/v1/session'],
  ['GET', '/v1/sessions'],
  ['DELETE', '/v1/sessions/1'],
  ['GET', '/v1/keys'],
  ['POST', '/v1/keys', { name: 'a' }],
  ['DELETE', '/v1/keys/1'],
  ['GET', '/v1/me'],
  ['GET', '/v1/agents'],
  ['POST', '/v1/agents/deploy', {}],
  ['GET', '/v1/agents/mine'],
  ['DELETE', '/v1/agents/mine'],
  ['GET', '/v1/agents/mine/definition'],
  ['PUT', '/v1/agents/mine/definition', { revision: 'a', definition: {} }],
  ['GET', '/v1/agents/mine/deployments'],
  ['POST', '/v1/agents/mine/rollback', {}],
  ['GET', '/v1/agents/mine/env'],
  ['PUT', '/v1/agents/mine/env', { key: 'A', value: 'a' }],
  ['DELETE', '/v1/agents/mine/env', { key: 'A' }],
  ['GET', '/v1/agents/mine/rules'],
  ['DELETE', '/v1/agents/mine/rules/1'],
  ['GET', '/v1/agents/mine/logs'],
  ['GET', '/v1/agents/echo/logs/:id'],
]
const ofSandbox = endpoints.filter(endpoint => JSON.stringify(endpoint).includes(':id'))

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

test('these are all endpoints that there are', async () => {
  const { paths } = (await app.ask('GET', '/v1/openapi.json')).body
  const shapeOf = (path: string) => path.replace(/\?.*/, '').replace(/\/$/, '')
  const known = endpoints.map(([method, path]) => `${method} ${shapeOf(path)}`)
  const matches = (pattern: string) => known.some(each => new RegExp(`^${pattern}$`).test(each))
  const missing = Object.entries<object>(paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .map(
        method =>
          `${method.toUpperCase()} ${shapeOf(path)
            .replace(/\{path\}$/, '.*')
            .replace(/\{\w+\}/g, '[^/]+')}`,
      )
      .filter(pattern => !matches(pattern)),
  )
  // Of these everybody may ask, or keys that may do nothing else.
  expect(missing).toEqual(['GET /health', 'GET /health/ready', 'POST /v1/session', 'GET /metrics'])
})

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
        if (authorization === undefined && `${method} ${path}` === 'GET /v1/session') {
          // A page asks whether its browser is signed in.
          expect(answer).toMatchObject({ status: 200, body: { id: null, caller: null } })
          continue
        }
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
  expect({ status, body }).toEqual({ status: 200, body: { status: 'ok', version: expect.any(String), disk: 'enough' } })
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
  for (const [method, path, body] of ofSandbox) {
    test(`gets the very answer for it that unknown and malformed ids get: ${method} ${path}`, async () => {
      const answers = await Promise.all(
        [{ id, thread }, { id: environmentId, thread }, unknown, malformed].map(async ids => {
          const { status, body: said } = await foreign(method, fill(path, ids), body && fill(body, ids))
          return JSON.stringify({ status, said })
        }),
      )
      expect(new Set(answers).size).toBe(1)
      const { status, said } = JSON.parse(answers[0]!)
      // A client may ask for the stream of a chat of which nobody knows yet.
      const isStream = method === 'GET' && path.endsWith('/stream')
      expect(`${status} ${said.error?.code}`).toBe(isStream ? '204 undefined' : '404 sandbox_not_found')
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

describe('a token', () => {
  const keys = ofSandbox.filter(([, path]) => !path.startsWith('/v1/agents'))
  const tokenFor = async (scope: object) => (await app.ask('POST', '/v1/tokens', scope)).body.token as string

  test('of another user gets the very answer that unknown ids get, everywhere', async () => {
    const key = await tokenFor({ userId: 'bob' })
    const unknown = { id: 'sbx_01a1fc99-2ff3-76f4-aa4b-684e48d176d8', thread: 'x' }
    for (const [method, path, body] of keys) {
      const answers = await Promise.all(
        [{ id, thread }, { id: environmentId, thread }, unknown].map(async ids => {
          const { status, body: said } = await app.ask(method, fill(path, ids), body && fill(body, ids), { key })
          return `${path} ${status} ${said.error?.code} ${said.message}`
        }),
      )
      const isStream = method === 'GET' && path.endsWith('/stream')
      const expected = isStream ? '204 undefined undefined' : '404 sandbox_not_found There is no such sandbox.'
      expect(new Set(answers)).toEqual(new Set([`${path} ${expected}`]))
    }
  })

  test('of another agent is refused everywhere', async () => {
    const key = await tokenFor({ agents: ['other'] })
    for (const [method, path, body] of keys) {
      const { status, body: said } = await app.ask(
        method,
        fill(path, { id, thread }),
        body && fill(body, { id, thread }),
        {
          key,
        },
      )
      expect(`${path} ${status} ${said.error?.code}`).toBe(`${path} 403 forbidden`)
    }
  })

  test('of any kind manages nothing', async () => {
    const scopes = [{}, { agents: ['mine', 'echo'] }, { userId: 'ann' }]
    const tokens = await Promise.all(scopes.map(tokenFor))
    for (const [method, path, body] of endpoints.filter(([, each]) =>
      /^\/v1\/(agents|tokens|usage|budgets|me)/.test(each),
    )) {
      for (const key of tokens) {
        const { status } = await app.ask(method, fill(path, { id, thread }), body, { key })
        expect(`${method} ${path} ${status}`).toBe(`${method} ${path} 403`)
      }
    }
  })

  test('has changed nothing', async () => {
    const { processes } = (await app.ask('GET', `/v1/sandboxes/${id}/processes`)).body
    expect([processes, (await app.ask('GET', `/v1/sandboxes/${id}`)).body.threads.length]).toEqual([[], 1])
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
