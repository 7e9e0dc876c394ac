import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { bash, modelSetups, useAgentServer } from '../support/agent-server.ts'
import { until } from '../support/until.ts'
import { useConsole } from './console.ts'

const agents = join(import.meta.dir, '../browser/agents')
const { server, model } = useAgentServer(modelSetups.slice(0, 1), { flags: ['--agents', agents] })
const { open } = useConsole(server)

/** More steps than any room has. */
const MOST_STEPS = 120

interface Focused {
  name: string
  isVisible: boolean
}

/** What has the focus: what it is called, and whether a person can see that it has it. */
const focused = (page: Page) =>
  page.evaluate<Focused>(`(() => {
    const element = document.activeElement
    const name = element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent
    const { outlineStyle, outlineWidth } = getComputedStyle(element)
    const isDrawn = outlineStyle !== 'none' && parseFloat(outlineWidth) > 0
    return { name: name.trim(), isVisible: isDrawn || element === document.body || element.className.includes('xterm') }
  })()`)

/** Presses a key until what has the focus has this name. Each stop on the way must be seen. */
async function reach(page: Page, name: string | RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  const passed: string[] = []
  for (let step = 0; step < MOST_STEPS; step++) {
    await page.keyboard.press(key)
    const at = await focused(page)
    passed.push(at.name.slice(0, 40))
    if (!at.isVisible) throw new Error(`the focus is not seen on ${at.name}`)
    if (typeof name === 'string' ? at.name === name : name.test(at.name)) return
  }
  throw new Error(`${name} is not reached: ${passed.join(', ')}`)
}
const press = async (page: Page, name: string | RegExp, key?: 'Tab' | 'Shift+Tab') => {
  await reach(page, name, key)
  await page.keyboard.press('Enter')
}
/** Of a list, which comes after its page. */
const pressOnce = async (page: Page, name: RegExp) => {
  await page.getByRole('button', { name }).first().waitFor()
  await press(page, name)
}
const type = async (page: Page, name: string | RegExp, text: string) => {
  await reach(page, name)
  await page.keyboard.type(text)
}
const focusOn = (page: Page, name: string) => until(async () => (await focused(page)).name === name)

test('a whole session is done by the keyboard alone', async () => {
  const { page } = await open({ isSignedOut: true })
  const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()

  await page.getByLabel('API key').waitFor()
  await type(page, 'API key', server.key)
  await page.keyboard.press('Enter')
  await heading('Overview')

  // A call that is approved.
  model.play({ text: 'I make it.', calls: [bash('echo one > /home/user/made.txt')] }, { text: 'Made.' })
  await press(page, 'Threads')
  await heading('Threads')
  await press(page, 'New chat')
  await pressOnce(page, /^Careful/)
  await page.getByLabel('Message', { exact: true }).waitFor()
  await type(page, 'Message', 'Make it.')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Approve' }).waitFor()
  await press(page, 'Approve', 'Shift+Tab')
  await page.getByText('Made.', { exact: true }).waitFor()

  // The terminal of its sandbox, and out of it.
  await press(page, /^sbx_/, 'Shift+Tab')
  await heading('Careful')
  await press(page, 'Terminals')
  await press(page, 'New terminal')
  const terminal = page.getByRole('region', { name: /^Terminal \d/ })
  await terminal.getByText('#').first().waitFor()
  await page.keyboard.type('cat /home/user/made.tx')
  await page.keyboard.press('Tab')
  await page.keyboard.type('; echo $((6*7))-done\n')
  await terminal.getByText('42-done').first().waitFor()
  await terminal.getByText('one', { exact: true }).first().waitFor()
  await page.keyboard.press('Escape')
  await press(page, 'Close it', 'Shift+Tab')
  await page.getByText('No terminal is open').waitFor()

  // A file.
  await press(page, 'Files', 'Shift+Tab')
  await pressOnce(page, /made\.txt$/)
  await type(page, /^Text of/, 'two ')
  await press(page, 'Save', 'Shift+Tab')
  await focusOn(page, 'Text of /home/user/made.txt')
  await press(page, 'More about made.txt', 'Shift+Tab')
  await page.getByRole('menuitem', { name: 'Rename' }).waitFor()
  await page.keyboard.press('Escape')
  await focusOn(page, 'More about made.txt')
  await page.keyboard.press('Enter')
  await page.getByRole('menuitem', { name: 'Rename' }).waitFor()
  await page.keyboard.press('r')
  await focusOn(page, 'Rename')
  await page.keyboard.press('Enter')
  await page.getByLabel('New path').waitFor()
  await page.keyboard.press('Escape')
  await focusOn(page, 'More about made.txt')

  // A reply that is stopped.
  await press(page, 'Threads', 'Shift+Tab')
  await press(page, 'New chat')
  await pressOnce(page, /^Echo/)
  await page.getByLabel('Message', { exact: true }).waitFor()
  await type(page, 'Message', '/slow 2000')
  await page.keyboard.press('Enter')
  await page.getByText('4 5 6').waitFor()
  await press(page, 'Stop')
  await page.getByText('cancelled').waitFor()

  // A key.
  await press(page, 'Settings', 'Shift+Tab')
  await type(page, 'Name of a new key', 'by keys')
  await page.keyboard.press('Enter')
  await page.getByText(/^tbx_/).waitFor()
  await press(page, 'Done')
  await focusOn(page, 'Name of a new key')
  await press(page, 'Revoke')
  await page.getByRole('dialog').waitFor()
  // The dialog keeps the focus, and gives it back.
  for (let step = 0; step < 6; step++) {
    await page.keyboard.press('Tab')
    expect(await page.evaluate("document.querySelector('[role=dialog]').contains(document.activeElement)")).toBe(true)
  }
  await page.keyboard.press('Escape')
  await focusOn(page, 'Revoke')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await press(page, 'Revoke')
  await page.getByText('revoked').waitFor()

  await press(page, 'Sessions', 'Shift+Tab')
  await page.getByText('this browser').waitFor()
  await press(page, 'Sign out')
  await page.getByLabel('API key').waitFor()
}, 180_000)
