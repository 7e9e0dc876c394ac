import { Database } from 'bun:sqlite'
import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '../support/until.ts'
import { useConsole } from './console.ts'

const { server, open } = useConsole()
const MESSAGES = 3000
let thread = ''

beforeAll(async () => {
  const sandboxId = await server.sandbox()
  await (await server.chat('Message 0', { sandboxId })).text()
  const { threads } = (await server.ask('GET', `/v1/sandboxes/${sandboxId}`)).body
  const id = threads[0].id
  thread = `/sandboxes/${sandboxId}/threads/${id}`
  using db = new Database(join(server.dataDirectory, 'threadbox.db'))
  db.run('pragma busy_timeout = 10000')
  db.transaction(() => {
    const add = db.query(
      `insert into messages (thread_id, id, position, role, parts, created_at)
       values ($thread, $id, $position, $role, $parts, '2026-01-01T00:00:00.000Z')`,
    )
    for (let at = 2; at < MESSAGES; at++) {
      const text = `Message ${at}: **bold** and \`code\`\n\n- one\n- two\n\n\`\`\`ts\nconst a = ${at}\n\`\`\``
      const role = at % 2 === 0 ? 'user' : 'assistant'
      const parts = JSON.stringify([{ type: 'text', text }])
      add.run({
        $thread: id,
        $id: `msg_${String(at).padStart(6, '0')}`,
        $position: at + 10,
        $role: role,
        $parts: parts,
      })
    }
  }).immediate()
})

test('a long conversation opens at its end, and keeps what was shown of its beginning', async () => {
  const { page } = await open({ path: thread })
  const last = page.getByText(`Message ${MESSAGES - 1}:`)
  await last.waitFor()
  await until(() =>
    page.evaluate(
      `(() => { const { top, bottom } = [...document.querySelectorAll('.message')].at(-1).getBoundingClientRect(); return bottom > 0 && top < innerHeight })()`,
    ),
  )
  await page.getByRole('button', { name: 'Show earlier messages' }).click()
  const earlier = page.getByText(`Message ${MESSAGES - 200}:`)
  // It is drawn when a reader comes near.
  const goBack = async () => {
    await until(async () => (await page.locator('.message').count()) >= 200)
    await page.evaluate('scrollTo(0, 0)')
    await earlier.waitFor()
  }
  await goBack()
  // After each reply the newest messages are read again.
  for (const text of ['One more', 'And another']) {
    const refreshed = page.waitForResponse(response => /threads\/thr_[^/]*\?limit=/.test(response.url()))
    await page.getByLabel('Message', { exact: true }).fill(text)
    await page.keyboard.press('Enter')
    await page.locator('.message.assistant', { hasText: text }).waitFor()
    await refreshed
    await page.getByRole('button', { name: 'Send' }).waitFor()
  }
  await goBack()
  expect(await earlier.count()).toBe(1)
  expect(await page.locator('.message').count()).toBe(204)
})

test('a directory of thousands of files is drawn a part at a time', async () => {
  const id = await server.sandbox()
  await server.exec(id, 'mkdir -p /home/user/many; cd /home/user/many; for i in $(seq 1001 4000); do : > "f$i"; done')
  const { page } = await open({ path: `/sandboxes/${id}/files` })
  await page.getByRole('button', { name: 'many directory' }).click()
  await page.getByRole('button', { name: 'f1200', exact: true }).waitFor()
  expect(await page.locator('li.file').count()).toBe(200)
  await page.getByRole('button', { name: 'Show 200 more of 3,000' }).click()
  await page.getByRole('button', { name: 'f1400', exact: true }).waitFor()
  expect(await page.locator('li.file').count()).toBe(400)
})
