import { describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { startServer } from '../support/server.ts'

const ask = (app: ReturnType<typeof useApp>) => app.ask('GET', '/health/ready', undefined, { key: null })

describe('a server that has all it needs', () => {
  const app = useApp()
  test('is ready, and tries its backend no more often than twice a minute', async () => {
    let tries = 0
    const backend = app.runtime.backends.get('nsjail')!
    const { check } = backend
    backend.check = () => {
      tries += 1
      return check.call(backend)
    }
    for (let count = 0; count < 20; count++) {
      const { status, body } = await ask(app)
      expect([status, body]).toEqual([200, { status: 'ready' }])
    }
    expect(tries).toBe(1)
    backend.check = check
  })
})

describe('a server whose backend lacks something', () => {
  const app = useApp()
  test('is not ready, and names the check without what was found', async () => {
    const backend = app.runtime.backends.get('nsjail')!
    const { check } = backend
    backend.check = async () => [
      { name: 'namespaces', ok: false, required: true, detail: 'secret detail' },
      { name: 'cgroups', ok: false, required: false, detail: 'x' },
    ]
    const { status, body } = await ask(app)
    expect([status, body]).toEqual([503, { status: 'not_ready', reasons: ['nsjail: namespaces'] }])
    backend.check = check
  })
})

test('one that shuts down is not ready while its replies end, and refuses new work', async () => {
  await using server = await startServer({ flags: ['--grace-ms', '60000', '--spares', '0'] })
  const reply = await server.chat('/slow 40')
  const reader = reply.body!.getReader()
  await reader.read()
  const stopped = server.stop()
  let ready = await fetch(`${server.url}/health/ready`)
  while (ready.status === 200) ready = await fetch(`${server.url}/health/ready`)
  expect([ready.status, await ready.json()]).toEqual([
    503,
    { status: 'not_ready', reasons: ['the server is shutting down'] },
  ])
  expect(codeOf(await server.ask('POST', '/v1/sandboxes', { agent: 'echo' }))).toBe('503 shutting_down')
  while (!(await reader.read()).done);
  expect(await stopped).toBe(0)
})
