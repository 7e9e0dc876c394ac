import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { say } from '../support/chat.ts'
import { askRaw } from '../support/client.ts'
import { expectError, SECRET } from '../support/errors.ts'

const app = useApp()
let id = ''
let thread = ''
beforeAll(async () => {
  id = await app.sandbox()
  thread = (await app.ask('POST', `/v1/sandboxes/${id}/threads`, {})).body.id
})

const fill = (text: string) => text.replaceAll(':id', id).replaceAll(':thread', thread)

describe('a wrong query is 400 and named', () => {
  const queries: [string, string][] = [
    ['/v1/sandboxes/:id/files', 'path'],
    ['/v1/sandboxes/:id/files?path=', 'path'],
    [`/v1/sandboxes/:id/files?path=${SECRET}`, 'path'],
    [`/v1/sandboxes/:id/files?path=/%00${SECRET}`, 'path'],
    [`/v1/sandboxes/:id/files?path=/${'x'.repeat(5000)}`, 'path'],
    ['/v1/sandboxes/:id/files?path=/etc/hosts&format=hunter2-secret', 'format'],
    ['/v1/sandboxes/:id/files/list', 'path'],
    ['/v1/sandboxes/:id/files/list?path=/&depth=0', 'depth'],
    ['/v1/sandboxes/:id/files/list?path=/&depth=x', 'depth'],
    ['/v1/sandboxes/:id/files/list?path=/&depth=-1', 'depth'],
    ['/v1/sandboxes/:id/files/list?path=/&depth=1.5', 'depth'],
    ['/v1/sandboxes/:id/files/info?path=relative', 'path'],
    ['/v1/sandboxes/:id/files/exists', 'path'],
    ['/v1/sandboxes?limit=0', 'limit'],
    ['/v1/sandboxes?limit=x', 'limit'],
    ['/v1/sandboxes?limit=-1', 'limit'],
    ['/v1/sandboxes?limit=1e3', 'limit'],
    ['/v1/sandboxes?limit=1000', 'limit'],
  ]
  for (const [path, field] of queries) {
    test(`GET ${path.slice(0, 80)}`, async () => expectError(await app.ask('GET', fill(path)), { field }))
  }
  test('DELETE of files without a path', async () =>
    expectError(await app.ask('DELETE', fill('/v1/sandboxes/:id/files')), { field: 'path' }))
  test('POST of raw bytes without a path', async () =>
    expectError(
      await app.ask('POST', fill('/v1/sandboxes/:id/files?format=blob'), undefined, { body: new Blob(['x']) }),
      { field: 'path' },
    ))
  test('POST of raw bytes with an unknown format', async () =>
    expectError(
      await app.ask('POST', fill('/v1/sandboxes/:id/files?path=/a&format=x'), undefined, { body: new Blob(['x']) }),
      { field: 'format' },
    ))
})

describe('what is not there is 404 with its code', () => {
  const missing: [string, string, unknown, string][] = [
    ['POST', '/v1/sandboxes', { agent: 'nobody' }, 'agent_not_found'],
    ['POST', '/v1/sandboxes', { agent: '' }, 'agent_not_found'],
    ['POST', '/v1/sandboxes', { agent: '../echo' }, 'agent_not_found'],
    ['POST', '/v1/chat/nobody', { messages: [say('a')] }, 'agent_not_found'],
    ['GET', '/v1/chat/nobody/:id/stream', undefined, 'agent_not_found'],
    ['POST', '/v1/chat/echo', { sandboxId: 'sbx_none', messages: [say('a')] }, 'sandbox_not_found'],
    ['POST', '/v1/chat/echo', { sandboxId: '', messages: [say('a')] }, 'sandbox_not_found'],
    ['POST', '/v1/chat/echo', { sandboxId: ':id', threadId: 'thr_none', messages: [say('a')] }, 'thread_not_found'],
    ['GET', '/v1/sandboxes/:id/threads/none', undefined, 'thread_not_found'],
    ['DELETE', '/v1/sandboxes/:id/threads/none', undefined, 'thread_not_found'],
    ['GET', '/v1/chat/echo/:id/stream?threadId=none', undefined, 'thread_not_found'],
    ['DELETE', '/v1/chat/echo/none/stream', undefined, 'sandbox_not_found'],
    ['GET', '/v1', undefined, 'not_found'],
    ['GET', '/v2/threads', undefined, 'not_found'],
    ['GET', '/v1/sandboxes/:id/nothing', undefined, 'not_found'],
    ['POST', `/v1/${SECRET}`, {}, 'not_found'],
    ['GET', '/v1/sandboxes//threads', undefined, 'not_found'],
  ]
  for (const [method, path, body, code] of missing) {
    test(`${method} ${path} ${JSON.stringify(body) ?? ''}`, async () => {
      const text = body === undefined ? undefined : fill(JSON.stringify(body))
      expectError(await app.ask(method, fill(path), text && JSON.parse(text)), { status: 404, code })
    })
  }
})

describe('an odd id is 404', () => {
  const odd = [
    '%252e%252e',
    '%2e%2e%2f',
    '..%2f..%2fetc%2fpasswd',
    '%2F',
    '%00',
    '%E6%BC%A2%F0%9F%8E%89',
    '%FF%FE',
    '%',
    '%zz',
    "'%20or%201=1--",
    '__proto__',
    'constructor',
    'x'.repeat(8000),
    ' ',
    '*',
    ':sandboxId',
    'null',
    'undefined',
    '%0d%0ax-injected:%201',
  ]
  for (const name of odd) {
    test(name.slice(0, 40), async () => {
      for (const path of [
        `/v1/sandboxes/${name}`,
        `/v1/sandboxes/${name}/threads`,
        fill(`/v1/sandboxes/:id/threads/${name}`),
      ]) {
        const answer = await askRaw(
          app.url,
          `GET ${path.replaceAll(' ', '%20')} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${app.key}\r\nconnection: close\r\n\r\n`,
        )
        expect(answer.headers.get('x-injected')).toBeNull()
        expect(answer.body.error.code).toBeOneOf(['sandbox_not_found', 'thread_not_found', 'not_found'])
        expectError(answer, { status: 404, code: answer.body.error.code })
      }
      // A client may call its chat anything: nothing runs under that name.
      const { status } = await askRaw(
        app.url,
        `GET /v1/chat/echo/${name.replaceAll(' ', '%20')}/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${app.key}\r\nconnection: close\r\n\r\n`,
      )
      expect(status).toBeOneOf([204, 404])
      expect(app.log.filter(line => line.includes('error'))).toEqual([])
    })
  }
})

describe('a wrong method is 405 and the right ones are told', () => {
  const wrong: [string, string, string][] = [
    ['PUT', '/v1/sandboxes', 'GET, POST'],
    ['DELETE', '/v1/sandboxes', 'GET, POST'],
    ['PUT', '/v1/sandboxes/:id', 'DELETE, GET, PATCH'],
    ['POST', '/v1/sandboxes/:id', 'DELETE, GET, PATCH'],
    ['GET', '/v1/sandboxes/:id/exec', 'POST'],
    ['PUT', '/v1/sandboxes/:id/files', 'DELETE, GET, POST'],
    ['POST', '/v1/sandboxes/:id/files/list', 'GET'],
    ['GET', '/v1/sandboxes/:id/git/clone', 'POST'],
    ['PUT', '/v1/sandboxes/:id/threads/:thread', 'DELETE, GET, PATCH'],
    ['GET', '/v1/chat/echo', 'POST'],
    ['POST', '/v1/chat/echo/:id/stream', 'DELETE, GET'],
    ['GET', '/v1/tokens', 'POST'],
    ['POST', '/health', 'GET'],
  ]
  for (const [method, path, allowed] of wrong) {
    test(`${method} ${path}`, async () => {
      const answer = await app.ask(method, fill(path), method === 'GET' ? undefined : {})
      expectError(answer, { status: 405, code: 'method_not_allowed' })
      expect(answer.headers.get('allow')?.split(', ').sort().join(', ')).toBe(allowed)
    })
  }
})

describe('GET and DELETE may say content-type: application/json without a body', () => {
  for (const [method, path] of [
    ['GET', '/v1/sandboxes'],
    ['GET', '/v1/sandboxes/:id'],
    ['GET', '/v1/sandboxes/:id/files/list?path=/'],
    ['GET', '/v1/chat/echo/:id/stream'],
    ['DELETE', '/v1/chat/echo/:id/stream'],
    ['DELETE', '/v1/sandboxes/:id/threads/:thread'],
    ['DELETE', '/v1/sandboxes/:id'],
  ] as const) {
    test(`${method} ${path}`, async () => {
      const { status } = await app.ask(method, fill(path), undefined, {
        headers: { 'content-type': 'application/json' },
      })
      expect(status).toBeWithin(200, 300)
    })
  }
})

test('nothing of all this was a fault of the server', () => {
  expect(app.log.filter(line => line.includes('error'))).toEqual([])
})
