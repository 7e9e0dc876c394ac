import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Sandbox as CodeInterpreter } from '@e2b/code-interpreter'
import { Sandbox } from 'e2b'
import { e2b } from '../../plugins/e2b/index.ts'
import { useApp } from '../support/app.ts'
import { startPreviewServer } from '../support/preview-server.ts'
import { openThreadboxAsE2b, type ThreadboxAsE2b } from '../support/threadbox-as-e2b.ts'

// As E2B Embed: an API and one address for all sandboxes, without names for them. The suite of e2b-contract.test.ts runs in this mode too.
setDefaultTimeout(60_000)

const PORT = 8410

let outer: ThreadboxAsE2b
beforeAll(async () => {
  outer = await openThreadboxAsE2b()
})
const app = useApp(['--backend', 'e2b'], {}, () => [
  e2b({ connection: outer.variables, template: 'base', idleMs: 3_600_000 }),
])
afterAll(() => outer.close())

/** What the published SDK is given for Embed. */
const embed = () => ({ apiKey: outer.key, apiUrl: outer.proxy.url, sandboxUrl: outer.proxy.url })

test('the published SDK works on it, so the address behaves as Embed’s', async () => {
  const sandbox = await Sandbox.create('base', { ...embed(), metadata: { of: 'sdk' }, timeoutMs: 60_000 })
  try {
    const { stdout, exitCode } = await sandbox.commands.run('echo "$WHO"', { user: 'root', envs: { WHO: 'headers' } })
    expect([stdout, exitCode]).toEqual(['headers\n', 0])
    await sandbox.files.write('/tmp/a.txt', 'by headers', { user: 'root' })
    expect(await sandbox.files.read('/tmp/a.txt', { user: 'root' })).toBe('by headers')
    expect(await sandbox.isRunning()).toBe(true)
    const listed = await Sandbox.list({ ...embed(), query: { metadata: { of: 'sdk' } } }).nextItems()
    expect(listed.map(({ sandboxId }) => sandboxId)).toEqual([sandbox.sandboxId])
    const again = await Sandbox.connect(sandbox.sandboxId, embed())
    expect((await again.commands.run('cat /tmp/a.txt', { user: 'root' })).stdout).toBe('by headers')
  } finally {
    await sandbox.kill()
  }
  await expect(sandbox.commands.run('true', { user: 'root' })).rejects.toThrow()
})

test('its code interpreter too', async () => {
  const sandbox = await CodeInterpreter.create('code-interpreter-v1', embed())
  try {
    const context = await sandbox.createCodeContext({ language: 'python' })
    expect((await sandbox.runCode('6 * 7', { context })).text).toBe('42')
  } finally {
    await sandbox.kill()
  }
})

test('commands, files, processes and previews of sandboxes there go by headers alone', async () => {
  const id = await app.sandbox({ files: { '/home/user/given.txt': 'given' }, envs: { TOKEN: 'abc' } })
  expect(await app.shell(id, 'cat given.txt; echo " $TOKEN"')).toBe('given abc\n')
  await startPreviewServer(app, id, PORT)
  const { body } = await app.ask('POST', `/v1/sandboxes/${id}/ports/${PORT}/link`)
  expect(body.host.url).toBe(outer.proxy.url)
  const direct = await fetch(`${body.host.url}/hello`, { headers: body.host.headers })
  expect((await direct.text()).split('\r\n')[0]).toBe('GET /hello HTTP/1.1')
  const preview = await app.request('GET', `/v1/sandboxes/${id}/ports/${PORT}/hello`)
  expect([preview.status, await preview.text()]).toEqual([200, expect.stringContaining('GET /hello')])
  await app.ask('DELETE', `/v1/sandboxes/${id}`)
})

test('doctor says when requests to sandboxes would go elsewhere', async () => {
  const way = async (connection: Record<string, string>) => {
    const { backend } = e2b({ connection, template: 'base', idleMs: 1 })
    const made = backend!({ ...app.runtime, dataDirectory: app.directory, serveProxy: () => {}, log: () => {} })
    const found = (await made.check()).find(({ name }) => name === 'way to sandboxes')
    await made.close()
    return [found?.ok, found?.detail]
  }
  const { E2B_SANDBOX_URL, ...apiAlone } = outer.variables
  expect(await way(outer.variables)).toEqual([true, E2B_SANDBOX_URL])
  expect(await way(apiAlone)).toEqual([false, 'hosts of e2b.app, unless that E2B names others'])
  expect(await way({ ...apiAlone, E2B_DOMAIN: 'e2b.example' })).toEqual([true, 'hosts of e2b.example'])
})
