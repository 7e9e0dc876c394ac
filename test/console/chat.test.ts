import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { bash, modelSetups, useAgentServer } from '../support/agent-server.ts'
import { type ConsolePage, useConsole } from './console.ts'

const agents = join(import.meta.dir, '../browser/agents')
const { server, model } = useAgentServer(modelSetups.slice(0, 1), { flags: ['--agents', agents] })
const { open } = useConsole(server)

/** Begins a chat with an agent in a new sandbox, by two clicks. */
async function begin(agent: string): Promise<ConsolePage> {
  const opened = await open({ path: '/threads' })
  await opened.page.getByRole('link', { name: 'New chat' }).click()
  await opened.page.getByRole('button', { name: agent }).click()
  await opened.page.getByLabel('Message', { exact: true }).waitFor()
  return opened
}
const say = async ({ page }: ConsolePage, text: string) => {
  await page.getByLabel('Message', { exact: true }).fill(text)
  await page.keyboard.press('Enter')
}

test('a call that is approved runs, and the reply goes on in the same message', async () => {
  model.play({ text: 'I **make** it.', calls: [bash('echo one; echo two')] }, { text: 'Made.' })
  const chat = await begin('Careful')
  const { page } = chat
  await say(chat, 'Make it.')
  await page.getByRole('group', { name: 'May the agent do this?' }).waitFor()
  expect(await page.locator('.message.assistant strong').textContent()).toBe('make')
  expect(await chat.accessibility()).toEqual([])
  await chat.picture('approval')
  await page.reload()
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByText('Made.').waitFor()
  await page.locator('summary', { hasText: 'Bash' }).click()
  await page.getByText('one\ntwo').waitFor()
  expect(await page.locator('.message.assistant').count()).toBe(1)
})

test('a denial is told to the agent with its reason', async () => {
  model.play({ calls: [bash('rm -rf /')] }, { text: 'I leave it.' })
  const chat = await begin('Careful')
  await say(chat, 'Remove all.')
  await chat.page.getByLabel('Reason, for a denial').fill('Not on a Sunday.')
  await chat.page.getByRole('button', { name: 'Deny' }).click()
  await chat.page.getByText('I leave it.').waitFor()
  expect(JSON.stringify(model.requests.at(-1)?.body.messages.at(-1))).toContain('Not on a Sunday.')
})

test('a reload in the middle of a reply shows all of it, and Stop ends it', async () => {
  const chat = await begin('Echo')
  const { page } = chat
  await say(chat, '/slow 2000')
  await page.getByText('4 5 6').waitFor()
  await page.reload()
  await page.getByText('4 5 6').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('button', { name: 'Regenerate' }).waitFor()
  await page.getByText('cancelled').waitFor()
})

test('an edit keeps what was there as a version, and steps back to it', async () => {
  const chat = await begin('Echo')
  const { page } = chat
  await say(chat, 'Left')
  await page.locator('.message.assistant', { hasText: 'Left' }).waitFor()
  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByLabel('Your message').fill('Right')
  await page.getByRole('button', { name: 'Send again' }).click()
  await page.locator('.message.assistant', { hasText: 'Right' }).waitFor()
  await page.getByText('2 of 2').waitFor()
  await page.getByRole('button', { name: 'The version before' }).click()
  await page.locator('.message.assistant', { hasText: 'Left' }).waitFor()
  await page.getByText('1 of 2').waitFor()
})

test('a message waits for its turn while a reply is under way', async () => {
  const chat = await begin('Echo')
  const { page } = chat
  await say(chat, '/slow 60')
  await page.getByText('1 2 3').waitFor()
  await say(chat, 'And then?')
  await page.getByRole('region', { name: 'Messages that wait' }).waitFor()
  await page.locator('.message.assistant', { hasText: 'And then?' }).waitFor()
  expect(await page.locator('.message.user').count()).toBe(2)
})

test('a thread is found by what was said, renamed and deleted', async () => {
  const chat = await begin('Echo')
  const { page } = chat
  await say(chat, 'the quick brown xylophone')
  await page.locator('.message.assistant', { hasText: 'xylophone' }).waitFor()
  await page.getByRole('link', { name: 'Threads', exact: true }).first().click()
  await page.getByLabel('Words that were said').fill('xyloph')
  await page.getByRole('link', { name: /the quick brown xylophone/ }).click()
  await page.getByRole('button', { name: 'More about this thread' }).click()
  await page.getByRole('menuitem', { name: 'Rename' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Music')
  await page.getByRole('button', { name: 'Rename', exact: true }).click()
  await page.getByRole('heading', { name: 'Music' }).waitFor()
  await page.getByRole('button', { name: 'More about this thread' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('heading', { name: 'Threads' }).waitFor()
})

test('nothing that an agent says runs in the page, or loads anything: regression', async () => {
  const chat = await begin('Echo')
  const { page } = chat
  const hostile = [
    '<img src=x onerror="window.hit = 1"><script>window.hit = 2</script>',
    '[link](javascript:window.hit=3) ![image](https://evil.example/pixel.png)',
    '<svg onload="window.hit = 4"></svg> <iframe src="https://evil.example"></iframe>',
    '[data](data:text/html,<script>window.hit=5</script>)',
  ].join('\n\n')
  await say(chat, hostile)
  await page.locator('.message.assistant').waitFor()
  await page.getByRole('button', { name: 'Regenerate' }).waitFor()
  expect(await page.evaluate('window.hit')).toBeUndefined()
  const addresses = await page
    .locator('.message a:not(footer a)')
    .evaluateAll(links => links.map(link => link.getAttribute('href')))
  expect(addresses.filter(href => href && !/^https?:/.test(href))).toEqual([])
  expect(await page.locator('.message iframe, .message img, .message script').count()).toBe(0)
})
