import { beforeAll, expect, test } from 'bun:test'
import { useConsole } from './console.ts'

const { server, open } = useConsole()
beforeAll(async () => {
  await server.ask('POST', '/v1/keys', { name: 'a key for the pipeline' })
  const { id } = (await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })).body
  for (const text of ['hello', '$ false', '/fail']) {
    const body = { sandboxId: id, messages: [{ role: 'user', parts: [{ type: 'text', text }] }] }
    await (await server.request('POST', '/v1/chat/echo', { body })).text()
  }
})

const rooms = [
  ['overview', '/', 'Overview'],
  ['sandboxes', '/sandboxes', 'Sandboxes'],
  ['threads', '/threads', 'Threads'],
  ['new', '/new', 'New chat'],
  ['agents', '/agents', 'Agents'],
  ['agent', '/agents/echo', 'Echo'],
  ['versions', '/agents/echo/versions', 'Echo'],
  ['variables', '/agents/echo/variables', 'Echo'],
  ['usage', '/usage', 'Usage'],
  ['keys', '/settings', 'Settings'],
  ['secrets', '/settings/secrets', 'Settings'],
  ['sessions', '/settings/sessions', 'Settings'],
  ['server', '/settings/server', 'Settings'],
] as const

const looks = [
  { how: 'light', colorScheme: 'light', width: 1280 },
  { how: 'dark', colorScheme: 'dark', width: 1280 },
  { how: 'small', colorScheme: 'light', width: 390 },
] as const

for (const [name, path, heading] of rooms) {
  test(`${name} is in nobody’s way: light, dark and small`, async () => {
    const opened = await open({ path })
    const { page } = opened
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    await opened.settled()
    for (const { how, colorScheme, width } of looks) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 800 })
      expect({ how, found: await opened.accessibility() }).toEqual({ how, found: [] })
      // Only tables and the like scroll sideways, never the page.
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
      await opened.picture(`${name}-${how}`)
    }
  })
}

test('on a small page nothing of a row is cut, and the tab that is open is seen', async () => {
  const { id } = (await server.ask('GET', '/v1/sandboxes')).body.sandboxes[0]
  const { page } = await open({ path: '/sandboxes', width: 390 })
  await page.getByText(id).waitFor()
  const cut = (selector: string) =>
    page
      .locator(selector)
      .evaluateAll(all => all.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length)
  expect(await cut('.item .cut')).toBe(0)
  for (const [path, group] of [
    ['/', 'Latest runs, as a table'],
    ['/settings', 'API keys'],
    ['/settings/server', 'Settings'],
  ] as const) {
    await page.goto(path)
    await page.getByRole('group', { name: group }).getByRole('row').nth(1).waitFor()
    expect(await cut('.scroll')).toBe(0)
  }
  for (const path of [`/sandboxes/${id}/use`, '/agents/echo/log']) {
    await page.goto(path)
    const box = await page.locator('.tabs a[aria-current=page]').boundingBox()
    expect(Math.round((box?.x ?? 0) + (box?.width ?? 1000))).toBeLessThanOrEqual(390)
  }
  await page.goto(`/sandboxes/${id}`)
  await page.getByRole('heading', { name: 'What confines it' }).waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
})

test('the latest runs have the names of their threads', async () => {
  const { page } = await open()
  await page.getByRole('table').getByRole('link', { name: '/fail' }).waitFor()
})

test('every room is reached by the keyboard alone', async () => {
  const { page } = await open()
  for (const name of ['Overview', 'Sandboxes', 'Threads', 'Agents', 'Usage', 'Settings']) {
    await page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name }).waitFor()
  }
})

test('what others do is seen at once', async () => {
  const { page } = await open({ path: '/sandboxes' })
  await page.getByRole('list', { name: 'Sandboxes' }).waitFor()
  const { id } = (await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })).body
  await page.getByText(id).waitFor()
  await server.ask('DELETE', `/v1/sandboxes/${id}`)
  await page.getByText(id).waitFor({ state: 'detached' })
})

test('a key is made, shown once and revoked', async () => {
  const { page } = await open({ path: '/settings' })
  await page.getByLabel('Name of a new key').fill('ci')
  await page.getByRole('checkbox', { name: 'Look' }).check()
  await page.getByRole('button', { name: 'Make the key' }).click()
  const key = await page.getByText(/^tbx_/).textContent()
  expect((await server.ask('GET', '/v1/me', undefined, { key: key! })).body.scopes).toEqual(['read'])
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText(/^tbx_/).waitFor({ state: 'detached' })
  await page.getByRole('row', { name: /ci/ }).getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('revoked').waitFor()
  expect((await server.ask('GET', '/v1/me', undefined, { key: key! })).status).toBe(401)
})

test('a secret is set, listed by its name alone and removed', async () => {
  const { page } = await open({ path: '/settings/secrets' })
  await page.getByText('No secrets yet').waitFor()
  await page.getByLabel('Name of a secret').fill('GITHUB')
  await page.getByLabel('Value, which').fill('swordfish')
  await page.getByRole('button', { name: 'Set' }).click()
  await page.getByRole('row', { name: /GITHUB/ }).waitFor()
  expect(await page.getByLabel('Value, which').inputValue()).toBe('')
  expect(await page.content()).not.toContain('swordfish')
  await page
    .getByRole('row', { name: /GITHUB/ })
    .getByRole('button', { name: 'Remove' })
    .click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No secrets yet').waitFor()
  expect((await server.ask('GET', '/v1/secrets')).body.secrets).toEqual([])
})

test('a browser signs out, and another one is signed out', async () => {
  const other = await open()
  const { page } = await open({ path: '/settings/sessions' })
  await page.getByText('this browser').waitFor()
  const rows = page.getByRole('main').getByRole('listitem')
  await rows.filter({ hasNotText: 'this browser' }).first().getByRole('button', { name: 'Sign out' }).click()
  await rows.filter({ hasText: 'this browser' }).getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('API key').waitFor()
  await other.page.close()
})

test('an agent’s variable is set, and only its name is shown', async () => {
  const { page } = await open({ path: '/agents/echo/variables' })
  await page.getByRole('textbox', { name: 'Name' }).fill('TOKEN')
  await page.getByLabel('Value').fill('swordfish')
  await page.getByRole('button', { name: 'Set' }).click()
  await page.getByRole('list', { name: 'Names of variables' }).getByText('TOKEN', { exact: true }).waitFor()
  expect(await page.content()).not.toContain('swordfish')
  await page.getByRole('button', { name: 'Take TOKEN away' }).click()
  await page.getByRole('button', { name: 'Take TOKEN away' }).waitFor({ state: 'detached' })
})

test('usage of nothing says so', async () => {
  const { page } = await open({ path: '/usage' })
  await page.getByRole('heading', { name: 'Usage' }).waitFor()
  await page.getByText('Nothing was used in this time').waitFor()
  await page.getByText('Nothing limits what is spent').waitFor()
})
