import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { modelSetups, useAgentServer } from '../support/agent-server.ts'
import { until } from '../support/until.ts'
import { type ConsolePage, type OpenOptions, useConsole } from './console.ts'

const agents = join(import.meta.dir, '../browser/agents')
const { server, model } = useAgentServer(modelSetups.slice(0, 1), { flags: ['--agents', agents] })
const { open } = useConsole(server)

const definitionOf = async (slug: string) => (await server.ask('GET', `/v1/agents/${slug}/definition`)).body
/** Changes an agent as another person does. */
async function editBeside(slug: string, fields: object): Promise<void> {
  const { revision, definition } = await definitionOf(slug)
  const body = { revision, definition: { ...definition, ...fields } }
  expect((await server.ask('PUT', `/v1/agents/${slug}/definition`, body)).status).toBe(200)
}
async function openAgent(slug: string, options: OpenOptions = {}): Promise<ConsolePage> {
  const opened = await open({ path: `/agents/${slug}`, ...options })
  await opened.page.getByLabel('System prompt').waitFor()
  return opened
}
const json = async ({ page }: ConsolePage) => JSON.parse(await page.getByLabel('JSON').inputValue())

test('an agent is edited, tried, and rolled back', async () => {
  const opened = await openAgent('careful')
  const { page } = opened
  await page.getByLabel('System prompt').fill('Speak like\na pirate.')
  await page.getByLabel('Model calls in a chat').fill('7')
  await page.getByLabel('Tools taken away').fill('WebFetch\n')
  expect(await json(opened)).toMatchObject({
    systemPrompt: 'Speak like\na pirate.',
    options: { maxTurns: 7, disallowedTools: ['WebFetch'], approvals: 'on' },
  })
  await page.getByText('Not saved yet.').waitFor()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Version 2 is saved.').waitFor()
  await page.getByRole('button', { name: 'Try it', exact: true }).click()
  await page.getByLabel('Message', { exact: true }).fill('Hello.')
  await page.keyboard.press('Enter')
  await page.getByText('Hello from the fake model.').waitFor()
  const { body, tools } = model.requests.find(({ lastText }) => lastText === 'Hello.')!
  expect(JSON.stringify(body.system)).toContain('Speak like\\na pirate.')
  expect(tools).not.toContain('WebFetch')
  await page.goto('/agents/careful/versions')
  await page.getByText('What changed since version 1').click()
  await page.locator('ins', { hasText: 'a pirate.' }).waitFor()
  await page.locator('ins', { hasText: '"maxTurns": 7' }).waitFor()
  expect(await opened.accessibility()).toEqual([])
  await opened.picture('versions-changes')
  await page.getByRole('button', { name: 'Go back to version 1' }).click()
  await page.getByRole('listitem').filter({ hasText: 'Version 1' }).getByText('active').waitFor()
  expect((await definitionOf('careful')).definition.systemPrompt).toBeUndefined()
  await page.getByRole('link', { name: 'Log' }).click()
  await page.getByText('careful is back at version 1.').waitFor()
})

test('Save and try it saves, and begins a chat', async () => {
  const { page } = await openAgent('careful')
  await page.getByLabel('System prompt').fill('Speak like a poet.')
  await page.getByRole('button', { name: 'Save and try it' }).click()
  await page.getByLabel('Message', { exact: true }).fill('Tell me.')
  await page.keyboard.press('Enter')
  await page.getByText('Hello from the fake model.').waitFor()
  const { body } = model.requests.find(({ lastText }) => lastText === 'Tell me.')!
  expect(JSON.stringify(body.system)).toContain('Speak like a poet.')
})

test('the JSON changes the form, and what is none changes nothing', async () => {
  const opened = await openAgent('coder')
  const { page } = opened
  const definition = await json(opened)
  definition.options.allow = ['Bash(ls)', 'Read']
  definition.sandbox.setup = ['for a in b; do\n  true\ndone']
  await page.getByLabel('JSON').fill(JSON.stringify(definition))
  expect(await page.getByLabel('Calls allowed').inputValue()).toBe('Bash(ls)\nRead')
  expect(await page.getByLabel('Set-up commands').isDisabled()).toBe(true)
  await page.getByLabel('JSON').fill('{"name":')
  await page.getByText('This is not JSON').waitFor()
  expect(await page.getByRole('textbox', { name: 'Name' }).isDisabled()).toBe(true)
  expect(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled()).toBe(true)
  expect(await opened.accessibility()).toEqual([])
  await page.getByRole('button', { name: 'Discard' }).click()
  expect(await page.getByLabel('Calls allowed').inputValue()).toBe('')
  expect((await definitionOf('coder')).version).toBeNull()
})

test('what is wrong is said at its field, in the server’s words', async () => {
  const opened = await openAgent('coder')
  const { page } = opened
  opened.expected.push(/status of 400/)
  await page.getByLabel('Model calls in a chat').fill('many')
  await page.getByLabel('Memory, MB').fill('1')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('options.maxTurns: must be a whole number').waitFor()
  await page.getByText(/^sandbox.limits.memoryMb: 1 is too low/).waitFor()
  expect(await page.evaluate('document.activeElement.value')).toBe('many')
  expect(await opened.accessibility()).toEqual([])
  await opened.picture('agent-faults')
  const wrong = { ...(await json(opened)), options: { clientTools: { 'a b': {} } }, sandbox: {} }
  await page.getByLabel('JSON').fill(JSON.stringify(wrong))
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText(/^options.clientTools/).waitFor()
})

test('of two who edit at once, the slower one sees what the other did, and decides', async () => {
  const opened = await openAgent('coder')
  const { page } = opened
  await page.getByLabel('System prompt').fill('Mine.')
  await editBeside('coder', { name: 'Theirs' })
  await page.getByText('Somebody else has changed this agent').waitFor()
  await page.locator('ins', { hasText: '"name": "Theirs"' }).waitFor()
  expect(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled()).toBe(true)
  expect(await opened.accessibility()).toEqual([])
  await page.getByRole('button', { name: 'Take theirs' }).click()
  expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Theirs')
  await page.getByLabel('System prompt').fill('Mine.')
  await editBeside('coder', { name: 'Again' })
  await page.getByRole('button', { name: 'Keep mine' }).click()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText(/Version \d+ is saved/).waitFor()
  expect((await definitionOf('coder')).definition).toMatchObject({ name: 'Theirs', systemPrompt: 'Mine.' })
})

test('a change elsewhere is seen at once, and an unsaved one is there after a look at the versions', async () => {
  const { page } = await openAgent('echo')
  await editBeside('echo', { systemPrompt: 'From elsewhere.' })
  await until(async () => (await page.getByLabel('System prompt').inputValue()) === 'From elsewhere.')
  await page.getByLabel('System prompt').fill('Not yet.')
  const parts = page.getByRole('navigation', { name: 'Parts of the agent' })
  await parts.getByRole('link', { name: 'Versions' }).click()
  await page.getByRole('heading', { name: 'Versions' }).waitFor()
  await parts.getByRole('link', { name: 'Definition' }).click()
  expect(await page.getByLabel('System prompt').inputValue()).toBe('Not yet.')
})

test('an agent is edited and rolled back by the keyboard alone', async () => {
  const { page } = await openAgent('echo')
  const { keyboard } = page
  const reach = async (words: string) => {
    for (let steps = 0; steps < 100; steps++) {
      await keyboard.press('Tab')
      const here = await page.evaluate('(document.activeElement.labels?.[0] ?? document.activeElement).textContent')
      if (String(here).startsWith(words)) return
    }
    throw new Error(`${words} was not reached`)
  }
  await reach('System prompt')
  await keyboard.press('Control+a')
  await keyboard.type('By keys.')
  await keyboard.press('Control+Enter')
  await page.getByText(/Version \d+ is saved/).waitFor()
  expect((await definitionOf('echo')).definition.systemPrompt).toBe('By keys.')
  await page.reload()
  await page.getByLabel('System prompt').waitFor()
  await reach('Versions')
  await keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Versions' }).waitFor()
  await reach('Go back to version 1')
  await keyboard.press('Enter')
  await page.getByRole('listitem').filter({ hasText: 'Version 1' }).getByText('active').waitFor()
})

for (const options of [{ scheme: 'light' }, { scheme: 'dark' }, { width: 390 }] as const) {
  const how = 'scheme' in options ? options.scheme : 'small'
  test(`the form is in nobody’s way: ${how}`, async () => {
    const opened = await openAgent('careful', options)
    await opened.page.getByLabel('System prompt').fill('You write code with care, and ask before you push.')
    expect(await opened.accessibility()).toEqual([])
    expect(await opened.page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    await opened.picture(`definition-${how}`)
  })
}
