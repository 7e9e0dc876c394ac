import { describe, expect, test } from 'bun:test'
import { Sandbox } from 'e2b'
import { createControl } from '../../src/http/e2b/control.ts'
import { procedures } from '../../src/http/e2b/envd/handle.ts'
import { controlPaths, envdPaths } from '../../src/http/e2b/find-e2b-route.ts'
import { useApp } from '../support/app.ts'
import { call } from './client.ts'
import { sdks, useOptions } from './sdks.ts'

const KEY = 'e2b_0123456789abcdef0123456789abcdef'
const app = useApp(['--api-key', KEY])
const options = useOptions(app)

test('the configured key makes sandboxes, and its tokens open them', async () => {
  const sandbox = await Sandbox.create('base', { apiKey: KEY, apiUrl: app.url, sandboxUrl: app.url })
  expect((await sandbox.commands.run('echo hi')).stdout).toBe('hi\n')
  await sandbox.files.write('a', 'signed')
  expect(await (await fetch(await sandbox.downloadUrl('a'))).text()).toBe('signed')
  await sandbox.kill()
})

test('what is no snapshot is not removed, and the answer says what it is about', async () => {
  const said = async (method: string, path: string, body?: object) => (await call(options, method, path, body)).body
  expect(await said('DELETE', '/templates/base')).toEqual({
    code: 404,
    message: "There is no snapshot 'base'; other templates are removed as agents and bases are.",
  })
  expect(await said('DELETE', '/templates/tags', { name: 'base', tags: ['mine'] })).toEqual({
    code: 404,
    message: 'This server builds no templates: agents, bases and snapshots are templates here.',
  })
})

test('each path has a name in the metrics, and what programs inside answer has one', async () => {
  expect(createControl(app.runtime).routes.map(({ path }) => path)).toEqual(expect.arrayContaining([...controlPaths]))
  expect([...controlPaths]).toEqual(expect.arrayContaining(createControl(app.runtime).routes.map(({ path }) => path)))
  expect(envdPaths.filter(path => /^\/\w+\./.test(path)).toSorted()).toEqual(
    procedures.map(name => `/${name}`).toSorted(),
  )
  const sandbox = await Sandbox.create('base', options)
  await sandbox.files.read('/etc/passwd')
  await sandbox.commands.run('true')
  const place = { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '8399' }
  await fetch(`${app.url}/sandboxes/anything`, { headers: place })
  await sandbox.kill()
  const text = await (await app.request('GET', '/metrics')).text()
  const named = [...text.matchAll(/^threadbox_http_requests_total\{method="(\w+)",route="([^"]+)"/gm)]
  expect(named.map(([, method, route]) => `${method} ${route}`)).toEqual(
    expect.arrayContaining([
      ...['POST /v2/sandboxes', 'DELETE /sandboxes/:sandboxID', 'DELETE /templates/:templateID', 'GET /files'],
      ...['POST /process.Process/Start', 'GET sandbox port'],
    ]),
  )
})

describe.each(sdks)('e2b %s', (_, sdk) => {
  test('makes, finds, describes, extends, pauses, connects to and kills a sandbox', async () => {
    const user = crypto.randomUUID()
    const sandbox = await sdk.Sandbox.create('base', { ...options, metadata: { user }, timeoutMs: 60_000 })
    const { sandboxId } = sandbox
    expect(await sandbox.isRunning()).toBe(true)
    const info = await sandbox.getInfo()
    expect(info).toMatchObject({ sandboxId, templateId: 'base', metadata: { user }, state: 'running', cpuCount: 2 })
    const leftMs = info.endAt.getTime() - Date.now()
    expect(leftMs).toBeWithin(30_000, 60_001)
    const page = await sdk.Sandbox.list({ ...options, query: { metadata: { user } } }).nextItems()
    expect(page.map(each => each.sandboxId)).toEqual([sandboxId])

    await sandbox.setTimeout(600_000)
    const extended = (await sandbox.getInfo()).endAt
    await sdk.Sandbox.connect(sandboxId, { ...options, timeoutMs: 60_000 })
    expect((await sandbox.getInfo()).endAt).toEqual(extended)

    // The oldest has it under another name, and asks E2B itself without these options.
    const paused = 'pause' in sandbox ? sandbox.pause(options) : (sandbox as any).betaPause(options)
    expect(await paused).toBe(true)
    expect(await sandbox.isRunning()).toBe(false)
    expect((await sandbox.getInfo()).state).toBe('paused')
    const again = await sdk.Sandbox.connect(sandboxId, options)
    expect(await again.isRunning()).toBe(true)
    expect(await sdk.Sandbox.kill(sandboxId, options)).toBe(true)
    expect(await again.isRunning()).toBe(false)
    expect(await sdk.Sandbox.kill(sandboxId, options)).toBe(false)
    await expect(sdk.Sandbox.connect(sandboxId, options)).rejects.toThrow(/not found|doesn't exist|There is no such/)
  })

  test('a template that is not there is said to be so', async () => {
    await expect(sdk.Sandbox.create('nothing-of-the-kind', options)).rejects.toThrow(
      "404: template 'nothing-of-the-kind' not found",
    )
  })
})
