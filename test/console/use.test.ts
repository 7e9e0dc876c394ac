import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../support/until.ts'
import { useConsole } from './console.ts'

const agents = mkdtempSync(join(tmpdir(), 'threadbox-agents-'))
afterAll(() => rmSync(agents, { recursive: true, force: true }))
const write = (slug: string, setup: string[]) =>
  writeFileSync(join(agents, `${slug}.json`), JSON.stringify({ slug, name: slug, engine: 'echo', sandbox: { setup } }))
write('slow', ['echo packages are brought', 'until [ -e /tmp/go ]; do sleep 0.05; done'])
write('broken', ['echo nothing there >&2; exit 4'])
const { server, open } = useConsole({ flags: ['--agents', agents] })
const newSandbox = async () => (await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })).body.id as string

test('a new chat shows what the set-up does while it runs, and can be cancelled, by keyboard too', async () => {
  const before = (await server.ask('GET', '/v1/sandboxes')).body.sandboxes.length
  const opened = await open({ path: '/new', scheme: 'dark', width: 390 })
  const { page } = opened
  await page.getByRole('button', { name: /^slow/ }).focus()
  await page.keyboard.press('Enter')
  await page.getByText('Set-up command 2 of 2 runs…').waitFor()
  expect(await page.getByRole('log', { name: 'Output of the set-up' }).textContent()).toContain('packages are brought')
  expect(await opened.accessibility()).toEqual([])
  await opened.picture('create-progress-dark-390')
  await page.getByRole('button', { name: 'Cancel' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' })
  expect(await page.getByRole('alert').count()).toBe(0)
  expect((await server.ask('GET', '/v1/sandboxes')).body.sandboxes.length).toBe(before)
})

test('an agent that is tried shows what the set-up does, in sight of the button, and can be cancelled', async () => {
  const { page } = await open({ path: '/agents/slow' })
  const before = (await server.ask('GET', '/v1/sandboxes')).body.sandboxes.length
  const tried = async () => {
    await page.getByText('Set-up command 2 of 2 runs…').waitFor()
    const top = (await page.getByRole('region', { name: 'The new sandbox' }).boundingBox())?.y ?? -1
    expect(top).toBeGreaterThanOrEqual(0)
    expect(top).toBeLessThan(800)
    expect(await page.getByRole('log', { name: 'Output of the set-up' }).textContent()).toContain(
      'packages are brought',
    )
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' })
    expect(await page.getByRole('alert').count()).toBe(0)
  }
  await page.getByRole('button', { name: 'Try it', exact: true }).click()
  await tried()
  // The button stays at the foot of the window, however far down the form it is.
  await page.getByLabel('Disk, MB').fill('512')
  await page.getByRole('button', { name: 'Save and try it' }).click()
  await tried()
  expect((await server.ask('GET', '/v1/sandboxes')).body.sandboxes.length).toBe(before)
})

test('a set-up that fails is said in the server’s words', async () => {
  const { page } = await open({ path: '/new' })
  await page.getByRole('button', { name: /^broken/ }).click()
  const alert = page.getByRole('alert')
  await alert.waitFor()
  expect(await alert.textContent()).toContain('ended with exit code 4: nothing there')
})

test('a new chat leads to its conversation', async () => {
  const { page } = await open({ path: '/new' })
  await page.getByRole('button', { name: /^Echo/ }).click()
  await page.waitForURL(/\/sandboxes\/[^/]+\/threads\//)
})

test('the list and the room of a sandbox show what it uses, light and dark, wide and narrow', async () => {
  const id = await newSandbox()
  await server.exec(id, 'true')
  const stats = async () => (await server.ask('GET', `/v1/sandboxes/${id}/stats`)).body.samples
  await until(async () => (await stats()).length > 1)
  for (const [scheme, width] of [
    ['light', 1280],
    ['dark', 390],
  ] as const) {
    const opened = await open({ path: '/sandboxes', scheme, width })
    const { page } = opened
    const row = page.getByRole('link', { name: new RegExp(id) })
    await row.getByText(/MiB of memory/).waitFor()
    await row.getByText(/of disk/).waitFor()
    expect(await opened.accessibility()).toEqual([])
    await opened.picture(`sandboxes-use-${scheme}-${width}`)
    await row.click()
    await page.getByRole('link', { name: 'Use', exact: true }).press('Enter')
    await page.getByRole('img', { name: 'Memory, the last hour, as a plot' }).waitFor()
    await page.getByLabel('In use now').getByText('of 2.0 GiB').waitFor()
    const table = page.getByText('Show as a table').first()
    await table.press('Enter')
    expect(await page.getByRole('table').first().getByRole('row').count()).toBeGreaterThan(2)
    expect(await opened.accessibility()).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await opened.picture(`sandbox-use-${scheme}-${width}`)
  }
})

test('a stopped sandbox shows no use', async () => {
  const id = await newSandbox()
  await server.ask('POST', `/v1/sandboxes/${id}/stop`)
  const { page } = await open({ path: `/sandboxes/${id}/use` })
  await page.getByText('Nothing to plot yet').waitFor()
  expect(await page.getByLabel('In use now').textContent()).toContain('–')
  expect((await server.ask('GET', `/v1/sandboxes/${id}`)).body.isRunning).toBe(false)
})

test('a sandbox names its variables and secrets, and stops by a click that is confirmed', async () => {
  await server.ask('PUT', '/v1/secrets/GITHUB', { value: 'swordfish of its own' })
  const secrets = [{ secret: 'GITHUB', hosts: ['api.github.com'], as: { header: 'authorization' }, methods: ['GET'] }]
  const fields = { agent: 'echo', envs: { TOKEN: 'swordfish' }, secrets }
  const { id } = (await server.ask('POST', '/v1/sandboxes', fields)).body
  const opened = await open({ path: `/sandboxes/${id}` })
  const { page } = opened
  await page.getByRole('list', { name: 'Names of variables' }).getByText('TOKEN', { exact: true }).waitFor()
  await page.getByText('GITHUB at api.github.com, in the header authorization, for GET').waitFor()
  expect(await page.content()).not.toContain('swordfish')
  expect(await opened.accessibility()).toEqual([])
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
  await page.getByText('stopped', { exact: true }).waitFor()
  expect((await server.ask('GET', `/v1/sandboxes/${id}`)).body.isRunning).toBe(false)
})
