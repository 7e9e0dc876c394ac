import { describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { readChunks } from '../support/sse.ts'

const app = useApp()
const closed = useApp(['--origins', 'https://app.example,http://localhost:3000'])
const origin = 'https://app.example'
const exposed =
  'x-sandbox-id, x-thread-id, x-run-id, x-request-id, retry-after, ratelimit, ratelimit-policy, ratelimit-limit, ratelimit-remaining, ratelimit-reset'

describe('a preflight', () => {
  const preflight = (path: string, headers: Record<string, string> = {}) =>
    app.request('OPTIONS', path, {
      key: null,
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,x-own',
        ...headers,
      },
    })

  for (const path of [
    '/v1/sandboxes',
    '/v1/chat/echo',
    '/v1/sandboxes/x/files',
    '/v1/chat/echo/x/stream',
    '/health',
    '/v1/nothing',
  ]) {
    test(`of ${path} needs no key`, async () => {
      const response = await preflight(path)
      expect(response.status).toBe(204)
      expect(await response.text()).toBe('')
      expect(response.headers.get('access-control-allow-origin')).toBe(origin)
      expect(response.headers.get('access-control-allow-headers')).toBe('authorization,x-own')
      for (const method of ['GET', 'POST', 'DELETE']) {
        expect(response.headers.get('access-control-allow-methods')).toContain(method)
      }
      expect(response.headers.get('vary')).toContain('origin')
    })
  }

  test('allows what clients send when it asks for nothing', async () => {
    const response = await app.request('OPTIONS', '/v1/sandboxes', { key: null, headers: { origin } })
    for (const name of ['authorization', 'content-type', 'last-event-id']) {
      expect(response.headers.get('access-control-allow-headers')).toContain(name)
    }
  })

  test('cannot put a line of its own into the answer', async () => {
    const response = await preflight('/v1/sandboxes', { origin: 'https://a' })
    expect(response.headers.get('access-control-allow-origin')).toBe('https://a')
  })
})

describe('an answer', () => {
  const answers: [string, string, string, unknown, string | null, number][] = [
    ['a result', 'GET', '/v1/sandboxes', undefined, 'own', 200],
    ['a failed authentication', 'GET', '/v1/sandboxes', undefined, null, 401],
    ['bad input', 'POST', '/v1/sandboxes', {}, 'own', 400],
    ['what is not there', 'GET', '/v1/sandboxes/x', undefined, 'own', 404],
    ['no such endpoint', 'GET', '/v1/nothing', undefined, 'own', 404],
    ['a wrong method', 'PUT', '/v1/sandboxes', {}, 'own', 405],
    ['health', 'GET', '/health', undefined, null, 200],
    ['no content', 'GET', '/v1/chat/echo/sandbox-echo/stream', undefined, 'own', 204],
  ]
  for (const [name, method, path, body, key, status] of answers) {
    test(`of ${name} may be read by any origin`, async () => {
      const answer = await app.ask(method, path, body, { key: key && app.key, headers: { origin } })
      expect(answer.status).toBe(status)
      expect(answer.headers.get('access-control-allow-origin')).toBe(origin)
      expect(answer.headers.get('access-control-expose-headers')).toBe(exposed)
      expect(answer.headers.get('vary')).toContain('origin')
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    })
  }

  test('of a chat exposes the ids of what it made', async () => {
    const response = await app.request('POST', '/v1/chat/echo', {
      body: { messages: [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }] },
      headers: { origin },
    })
    expect(response.headers.get('access-control-allow-origin')).toBe(origin)
    expect(response.headers.get('access-control-expose-headers')).toBe(exposed)
    await readChunks(response)
  })

  test('to no browser has no such headers', async () => {
    const { headers } = await app.ask('GET', '/v1/sandboxes')
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })
})

describe('with origins that are restricted', () => {
  for (const [each, isAllowed] of [
    ['https://app.example', true],
    ['http://localhost:3000', true],
    ['https://evil.example', false],
    ['https://app.example.evil', false],
    ['http://app.example', false],
    ['https://app.example:444', false],
    ['null', false],
    ['HTTPS://APP.EXAMPLE', false],
  ] as const) {
    test(`${each} ${isAllowed ? 'may' : 'may not'} read`, async () => {
      for (const method of ['OPTIONS', 'GET']) {
        const response = await closed.request(method, '/v1/sandboxes', { headers: { origin: each } })
        expect(response.headers.get('access-control-allow-origin')).toBe(isAllowed ? each : null)
        expect(response.headers.get('vary')).toContain('origin')
      }
    })
  }
})
