import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '../support/until.ts'
import { useConsole } from './console.ts'

const { server, open } = useConsole()

/** A thread whose last reply has these parts. Its address. */
async function threadWith(parts: readonly object[]): Promise<string> {
  const sandboxId = await server.sandbox()
  const reply = await server.chat('Hello', { sandboxId })
  await reply.text()
  const { threads } = (await server.ask('GET', `/v1/sandboxes/${sandboxId}`)).body
  using db = new Database(join(server.dataDirectory, 'threadbox.db'))
  db.run('pragma busy_timeout = 10000')
  db.query("update messages set parts = $parts where thread_id = $thread and role = 'assistant'").run({
    $parts: JSON.stringify([...parts, { type: 'text', text: 'The end of it.' }]),
    $thread: threads[0].id,
  })
  return `/sandboxes/${sandboxId}/threads/${threads[0].id}`
}

const call = (toolName: string, input: unknown, output: unknown = 'done') => ({
  type: 'dynamic-tool',
  toolName,
  toolCallId: crypto.randomUUID(),
  state: 'output-available',
  input,
  output,
})

for (const name of ['constructor', '__proto__', 'toString'])
  test(`a tool with the name ${name} is shown as any other: regression`, async () => {
    const path = await threadWith([
      call(name, { file_path: `/a.${name}` }),
      call('Read', { file_path: `/a.${name}` }, 'text'),
    ])
    const { page } = await open({ path })
    await page.getByText('The end of it.').waitFor()
    for (const summary of await page.locator('.call > summary').all()) await summary.click()
    expect(await page.locator('.call .tool').allTextContents()).toEqual([name, 'Read'])
    await page.getByText('text', { exact: true }).waitFor()
  })

test('a call with many changes that are hard to compare does not hold the page up: regression', async () => {
  const lines = (salt: string) => Array.from({ length: 1500 }, (_, line) => `${(line * 7919) % 6007}${salt}`).join('\n')
  const edits = Array.from({ length: 100 }, (_, number) => ({
    old_string: lines(`a${number}`),
    new_string: lines(`b${number}`),
  }))
  const path = await threadWith([call('MultiEdit', { file_path: '/a', edits })])
  const { page } = await open({ path })
  // A comparison takes its 300 ms: all of them took half a minute.
  await page.getByText('The end of it.').waitFor({ timeout: 20_000 })
})

test('a list of tasks with hostile states is shown: regression', async () => {
  const todos = ['__proto__', 'constructor', 'pending'].map(status => ({ status, content: `${status} task` }))
  const { page } = await open({ path: await threadWith([call('TodoWrite', { todos })]) })
  await page.getByText('__proto__ task').waitFor()
})

test('a picture with a script is drawn, and the script does not run: regression', async () => {
  const id = await server.sandbox()
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><script>document.title = "ran"; alert(1)</script></svg>'
  await server.ask('POST', `/v1/sandboxes/${id}/files`, { path: '/home/user/a.svg', content: svg })
  const { page } = await open({ path: `/sandboxes/${id}/files` })
  await page.getByRole('button', { name: 'a.svg', exact: true }).click()
  await page.getByRole('img', { name: 'a.svg' }).waitFor()
  await until(() => page.evaluate('document.images[0]?.naturalWidth === 40'))
  expect(await page.title()).not.toBe('ran')
})
