import { describe, expect, test } from 'bun:test'
import { Sandbox } from 'e2b'
import { useApp } from '../support/app.ts'
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
