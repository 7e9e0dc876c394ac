import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useConsole } from './console.ts'

const { server, open } = useConsole()

/** What a page sees of it when its tab is behind another, or in front again. */
const show = (page: Page, state: 'hidden' | 'visible') =>
  page.evaluate(`Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${state}' });
    document.dispatchEvent(new Event('visibilitychange'))`)

test('eight tabs are open at once, and each shows what happens when it is seen', async () => {
  const { page: first } = await open({ path: '/sandboxes' })
  await first.getByRole('heading', { name: 'Sandboxes' }).waitFor()
  await show(first, 'hidden')
  for (let tab = 1; tab < 8; tab++) {
    const page = await first.context().newPage()
    await page.goto('/sandboxes')
    await page.getByRole('heading', { name: 'Sandboxes' }).waitFor({ timeout: 20_000 })
    await page.getByText('No sandboxes yet').waitFor({ timeout: 20_000 })
    await show(page, 'hidden')
  }
  const id = await server.sandbox()
  await show(first, 'visible')
  await first.getByText(id).waitFor()
  await server.ask('DELETE', `/v1/sandboxes/${id}`)
  await first.getByText(id).waitFor({ state: 'detached' })
})

test('events come again after a proxy has refused them for a while', async () => {
  const opened = await open({ path: '/agents' })
  const { page } = opened
  opened.expected.push(/status of 502/)
  await page.getByRole('heading', { name: 'Agents' }).waitFor()
  let refusals = 0
  await page.route('**/v1/events', route => {
    refusals += 1
    return refusals > 2 ? route.continue() : route.fulfill({ status: 502, body: 'Bad gateway' })
  })
  await show(page, 'hidden')
  await show(page, 'visible')
  await page.getByRole('link', { name: 'Sandboxes' }).click()
  await page.waitForResponse(response => response.url().endsWith('/v1/events') && response.status() === 200)
  const id = await server.sandbox()
  await page.getByText(id).waitFor()
  await server.ask('DELETE', `/v1/sandboxes/${id}`)
})

test('a page whose session has ended asks for a key', async () => {
  const { page } = await open({ path: '/sandboxes' })
  await page.getByRole('heading', { name: 'Sandboxes' }).waitFor()
  for (const { id } of (await server.ask('GET', '/v1/sessions')).body.sessions)
    await server.ask('DELETE', `/v1/sessions/${id}`)
  await page.getByRole('link', { name: 'Agents' }).click()
  await page.getByLabel('API key').waitFor()
})

test('a room whose files are gone with an older server says so, and leaves the others', async () => {
  const opened = await open()
  const { page } = opened
  opened.expected.push(/status of 404|dynamically imported module/)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.route('**/assets/*.js', route => route.fulfill({ status: 404, body: '' }))
  await page.getByRole('link', { name: 'Usage' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('This page cannot be shown')
  await page.getByRole('link', { name: 'Overview' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
})
