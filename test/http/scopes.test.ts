import { describe, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { findScopes } from '../../src/http/scopes.ts'
import { type Scope, scopes } from '../../src/model/scope.ts'
import { useApp } from '../support/app.ts'
import { say } from '../support/chat.ts'
import { codeOf } from '../support/client.ts'
import { until } from '../support/until.ts'

const app = useApp()
const keyFor = (...wanted: Scope[]) =>
  createKey(app.runtime.db, { team: 'default', name: 'scoped', scopes: wanted }).key
const chat = { messages: [say('a')] }

/** What each scope opens, beside `admin`, which opens all. */
const requests: [method: string, path: string, body: object | undefined, scopes: Scope[]][] = [
  ['GET', '/v1/me', undefined, ['read', 'chat', 'sandboxes', 'deploy', 'secrets']],
  ['POST', '/v1/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }, ['read', 'chat', 'sandboxes', 'deploy', 'secrets']],
  ['GET', '/v1/sandboxes', undefined, ['read', 'chat', 'sandboxes']],
  ['GET', '/v1/sandboxes/:id', undefined, ['read', 'chat', 'sandboxes']],
  ['GET', '/v1/sandboxes/:id/files/list?path=/', undefined, ['read', 'sandboxes']],
  ['GET', '/v1/sandboxes/:id/processes', undefined, ['read', 'sandboxes']],
  ['GET', '/v1/sandboxes/:id/threads', undefined, ['read', 'chat']],
  ['GET', '/v1/threads', undefined, ['read', 'chat']],
  ['GET', '/v1/runs', undefined, ['read', 'chat']],
  ['GET', '/v1/approvals', undefined, ['read', 'chat']],
  ['GET', '/v1/usage', undefined, ['read', 'chat']],
  ['GET', '/v1/agents', undefined, ['read', 'deploy']],
  ['GET', '/v1/agents/echo', undefined, ['read', 'deploy']],
  ['GET', '/v1/chat/echo/:id/stream', undefined, ['read', 'chat']],
  ['POST', '/v1/chat/echo', { sandboxId: ':id', ...chat }, ['chat']],
  ['POST', '/v1/sandboxes/:id/threads', {}, ['chat']],
  ['POST', '/v1/tokens', {}, ['chat']],
  ['POST', '/v1/sandboxes/:id/exec', { command: 'true' }, ['sandboxes']],
  ['POST', '/v1/sandboxes/:id/files', { path: '/a', content: '' }, ['sandboxes']],
  ['PATCH', '/v1/sandboxes/:id', {}, ['sandboxes']],
  ['POST', '/v1/sandboxes/:id/stop', undefined, ['sandboxes']],
  ['POST', '/v1/sandboxes/:id/ports/80/link', {}, ['sandboxes']],
  ['GET', '/v1/sandboxes/:id/ports/80/', undefined, ['sandboxes']],
  ['GET', '/v1/sandboxes/:id/processes/1/terminal', undefined, ['sandboxes']],
  ['PUT', '/v1/agents/echo/env', { key: 'A', value: 'a' }, ['deploy']],
  ['POST', '/v1/agents/echo/rollback', {}, ['deploy']],
  ['GET', '/v1/schedules', undefined, ['read', 'chat', 'sandboxes']],
  ['POST', '/v1/schedules', { cron: '@daily', agent: 'echo', prompt: 'a', paused: true }, ['chat']],
  ['POST', '/v1/schedules', { cron: '@daily', agent: 'echo', command: 'true', paused: true }, ['sandboxes']],
  ['POST', '/v1/schedules', { cron: '@daily', agent: 'echo', prompt: 'a', paused: true, keep: true }, []],
  ['GET', '/v1/secrets', undefined, ['read', 'secrets']],
  ['PUT', '/v1/secrets/A', { value: 'abcd' }, ['secrets']],
  ['DELETE', '/v1/secrets/B', undefined, ['secrets']],
  ['GET', '/v1/keys', undefined, []],
  ['POST', '/v1/keys', { name: 'more' }, []],
  ['GET', '/v1/sessions', undefined, []],
  ['GET', '/v1/server', undefined, []],
]

describe.each([...scopes])('a key with the scope %s alone', scope => {
  const key = { value: '' }
  test.each(requests)('is answered %s %s when it may', async (method, path, body, allowed) => {
    key.value ||= keyFor(scope)
    const id = await sandboxId()
    const fill = (text: string) => text.replaceAll(':id', id)
    const sent = body && JSON.parse(fill(JSON.stringify(body)))
    const response = await app.request(method, fill(path), { key: key.value, ...(sent && { body: sent }) })
    const text = await response.text()
    const isRefused = response.status === 403 && text.includes('The key lacks the scope')
    expect([isRefused, text]).toEqual([!(scope === 'admin' || allowed.includes(scope)), text])
  })
})

let made: Promise<string> | undefined
const sandboxId = () => (made ??= app.sandbox())

test('every route is for some scope, and these are for admin alone', async () => {
  const { paths } = (await app.ask('GET', '/v1/openapi.json')).body
  const routes = Object.entries<object>(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => [method.toUpperCase(), path.replaceAll(/\{[^}]+\}/g, 'x')] as const),
  )
  const closed = routes.filter(([method, path]) => findScopes(method, path)?.join() === 'admin')
  expect(closed.map(route => route.join(' ')).sort()).toEqual([
    'DELETE /v1/keys/x',
    'DELETE /v1/sessions/x',
    'DELETE /v1/webhooks/x',
    'GET /health',
    'GET /health/ready',
    'GET /v1/audit',
    'GET /v1/keys',
    'GET /v1/server',
    'GET /v1/server/checks',
    'GET /v1/server/selftest',
    'GET /v1/sessions',
    'GET /v1/webhooks',
    'GET /v1/webhooks/x',
    'GET /v1/webhooks/x/deliveries',
    'PATCH /v1/webhooks/x',
    'POST /v1/keys',
    'POST /v1/webhooks',
    'POST /v1/webhooks/x/deliveries/x/redeliver',
  ])
})

describe('what a key with scopes has made has no more than it', () => {
  test('a token: regression', async () => {
    const id = await sandboxId()
    const { token } = (await app.ask('POST', '/v1/tokens', {}, { key: keyFor('chat') })).body
    const answer = await app.ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'true' }, { key: token })
    expect(codeOf(answer)).toBe('403 forbidden')
    expect((await app.ask('GET', '/v1/threads', undefined, { key: token })).status).toBe(200)
  })

  test('a session: regression', async () => {
    const signedIn = await app.request('POST', '/v1/session', {
      key: null,
      body: { key: keyFor('read') },
      headers: { origin: app.url },
    })
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
    const headers = { cookie, origin: app.url, 'sec-fetch-site': 'same-origin' }
    const session = await app.request('GET', '/v1/session', { key: null, headers })
    expect(((await session.json()) as any).caller.scopes).toEqual(['read'])
    const refused = await app.request('POST', '/v1/sandboxes', { key: null, headers, body: { agent: 'echo' } })
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('sandboxes')])
  })
})

test('a key that only looks ends no process by leaving its output: regression', async () => {
  const id = await sandboxId()
  const processes = `/v1/sandboxes/${id}/processes`
  const { pid } = (await app.ask('POST', processes, { command: 'echo up; sleep 1000' })).body
  const path = `${processes}/${pid}/output?follow=false`
  const refused = await app.request('GET', `${path}&hangup=true`, { key: keyFor('read') })
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('not sandboxes')])
  await until(async () => {
    const looked = await app.request('GET', path, { key: keyFor('read') })
    expect(looked.status).toBe(200)
    return (await looked.text()).includes('up')
  })
  expect((await app.ask('GET', `${processes}/${pid}`)).body.status).toBe('running')
})

test('the API makes keys with scopes, and lists them', async () => {
  const { status, body } = await app.ask('POST', '/v1/keys', { name: 'narrow', scopes: ['read', 'chat'] })
  expect([status, body.scopes]).toEqual([201, ['read', 'chat']])
  const { keys } = (await app.ask('GET', '/v1/keys')).body
  expect(keys.find(({ id }: { id: string }) => id === body.id).scopes).toEqual(['read', 'chat'])
  expect(codeOf(await app.ask('POST', '/v1/keys', { name: 'x', scopes: ['all'] }))).toBe('400 invalid_request')
  expect(codeOf(await app.ask('POST', '/v1/keys', { name: 'x', scopes: [] }))).toBe('400 invalid_request')
})
