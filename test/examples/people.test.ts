import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { bash, modelSetups, useAgentServer } from '../support/agent-server.ts'
import { temporaryDirectory } from '../support/server.ts'

const root = join(import.meta.dir, '../..')
const examples = join(root, 'examples')
const { server, model } = useAgentServer(modelSetups.slice(0, 1), {
  flags: ['--agents', join(examples, 'approvals/agents')],
})

let directory = ''
let browser: Browser
beforeAll(async () => {
  directory = temporaryDirectory()
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', chromiumSandbox: false })
})
afterAll(async () => {
  await browser.close()
  rmSync(directory, { recursive: true })
})

/** Runs the example's server as its README says, with packages from here, and its page. A problem of the page fails the test. */
async function withPage(name: string, run: (page: Page) => Promise<void>): Promise<void> {
  const cwd = join(directory, name)
  cpSync(join(examples, name), cwd, { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(cwd, 'node_modules'))
  const env = { ...process.env, THREADBOX_URL: server.url, THREADBOX_API_KEY: server.key, PORT: '0' }
  const web = Bun.spawn([process.execPath, 'server.ts'], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const context = await browser.newContext()
  try {
    const { value } = await web.stdout.getReader().read()
    const [, origin = ''] = /open (http\S+)/.exec(Buffer.from(value ?? []).toString()) ?? []
    const page = await context.newPage()
    const problems: string[] = []
    page.on('pageerror', error => void problems.push(`${error.stack}`))
    await page.goto(origin)
    await run(page)
    expect(problems).toEqual([])
    expect(await page.getByRole('alert').count()).toBe(0)
  } finally {
    await context.close()
    web.kill()
    await web.exited
  }
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

test('the page with approvals asks, also after a reload, and goes on', async () => {
  model.play({ calls: [bash('ls'), bash('echo made > note'), bash('rm -rf *')] }, { text: 'So it is.' })
  await withPage('approvals', async page => {
    await say(page, 'Make a file.')
    const approve = page.getByRole('button', { name: 'Approve' })
    await approve.nth(1).waitFor()
    expect(await approve.count()).toBe(2)
    // Where the conversation is.
    await page.waitForURL(/#./)
    await page.reload()
    await approve.first().click()
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.getByText('So it is.').waitFor()
    expect(await page.locator('small').allTextContents()).toEqual([
      'output-available',
      'output-available',
      'output-denied',
    ])
    await say(page, 'Thanks.')
    await page.getByText('Hello from the fake model.').waitFor()
    expect(await page.locator('article').count()).toBe(4)
  })
})

test('the tool of the page runs in the page, and the reply goes on', async () => {
  model.play({ calls: [{ name: 'setBackground', input: { color: 'blue' } }] }, ({ results }) => ({
    text: `It was ${JSON.parse(results[0] ?? '{}').before}.`,
  }))
  await withPage('browser-tool', async page => {
    await say(page, 'Make the page blue.')
    await page.getByText('It was none.').waitFor()
    expect(await page.evaluate('document.body.style.backgroundColor')).toBe('blue')
    expect(await page.locator('article').count()).toBe(2)
  })
})
