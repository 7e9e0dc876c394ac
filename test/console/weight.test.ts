import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useConsole } from './console.ts'

const { server, open } = useConsole()
const MAX_FIRST_BYTES = 250 * 1024

/** Gathers the scripts and styles that a page fetches. */
function watchAssets(page: Page): Set<string> {
  const paths = new Set<string>()
  page.on('response', response => {
    const { pathname } = new URL(response.url())
    if (/\.(js|css)$/.test(pathname)) paths.add(pathname)
  })
  return paths
}

/** What assets weigh as they are sent. */
async function weigh(paths: Iterable<string>): Promise<number> {
  let sum = 0
  for (const path of paths) {
    const response = await fetch(server.url + path, { decompress: false, headers: { 'accept-encoding': 'gzip' } })
    expect(`${path} ${response.headers.get('content-encoding')}`).toBe(`${path} gzip`)
    sum += (await response.arrayBuffer()).byteLength
  }
  return sum
}

for (const isSignedOut of [true, false])
  test(`the first view weighs at most 250 KB: ${isSignedOut ? 'a field for a key' : 'the overview'}`, async () => {
    const { page } = await open({ isSignedOut, path: 'about:blank' })
    const fetched = watchAssets(page)
    await page.goto('/')
    await (isSignedOut ? page.getByLabel('API key') : page.getByRole('heading', { name: 'Machine' })).waitFor()
    await page.waitForLoadState('load')
    const bytes = await weigh(fetched)
    expect(bytes).toBeGreaterThan(10_000)
    expect(bytes).toBeLessThan(MAX_FIRST_BYTES)
  })

test('what a room alone wants is fetched when it is opened', async () => {
  const id = await server.sandbox()
  const { page } = await open({ path: 'about:blank' })
  const fetched = watchAssets(page)
  await page.goto('/')
  await page.getByRole('heading', { name: 'Machine' }).waitFor()
  const atFirst = [...fetched]
  expect(atFirst.filter(path => /terminal|markdown|plot|files|network/.test(path))).toEqual([])
  await page.goto(`/sandboxes/${id}/terminals`)
  await page.getByText('No terminal is open').waitFor()
  expect([...fetched].filter(path => path.includes('terminals')).length).toBeGreaterThan(0)
})
