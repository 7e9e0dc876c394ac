import { expect, test } from 'bun:test'
import { command } from '../support/server.ts'
import { useConsole } from './console.ts'

const { server, open } = useConsole()

test('a key signs in, and is not kept where a script could read it', async () => {
  const { page } = await open({ isSignedOut: true })
  await page.getByLabel('API key').fill(server.key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const kept = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])')
  expect(kept).toBe('[{},{},""]')
  await page.reload()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
})

test('a wrong key is refused in the server’s words', async () => {
  const { page } = await open({ isSignedOut: true })
  await page.getByLabel('API key').fill('tbx_wrong')
  await page.keyboard.press('Enter')
  expect(await page.getByRole('alert').textContent()).toContain('not known')
})

for (const scheme of ['light', 'dark'] as const) {
  test(`nothing is in the way of anybody: ${scheme}`, async () => {
    const signIn = await open({ isSignedOut: true, scheme })
    await signIn.page.getByLabel('API key').waitFor()
    expect(await signIn.accessibility()).toEqual([])
    await signIn.picture(`sign-in-${scheme}`)
    const overview = await open({ scheme })
    await overview.page.getByRole('heading', { name: 'Overview' }).waitFor()
    expect(await overview.accessibility()).toEqual([])
    await overview.picture(`overview-${scheme}`)
  })
}

test('a link of the operator signs in once, and its secret does not stay in the address', async () => {
  const printed = await command(['sign-in', '--data-dir', server.dataDirectory, '--port', new URL(server.url).port])
  expect(printed).toMatchObject({ code: 0, stderr: '' })
  const link = printed.stdout.trim()
  expect(link).toStartWith(`${server.url}/#sign-in=tbi_`)
  const { page } = await open({ isSignedOut: true, path: link })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(page.url()).toBe(`${server.url}/`)
  const again = await open({ isSignedOut: true, path: link })
  expect(await again.page.getByRole('alert').textContent()).toContain('used already')
})

test('a link in a browser that is signed in already does not stay in the address either: regression', async () => {
  const { page } = await open({ path: '/#sign-in=tbi_of_no_use_here' })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(page.url()).toBe(`${server.url}/`)
})

test('the API’s document is there without a key', async () => {
  const response = await fetch(`${server.url}/docs`)
  expect(`${response.status} ${new URL(response.url).pathname}`).toBe('200 /v1/docs')
})
