import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { newId } from '../../src/db/id.ts'
import { insertSandbox } from '../../src/db/sandboxes.ts'
import { Server } from '../support/server.ts'
import { until } from '../support/until.ts'
import { useConsole } from './console.ts'

const SANDBOXES = 10_000
const MESSAGES = 5000
/** More than a screen of rows has, whatever the length of the list. */
const MOST_ROW_NODES = 700
/** Six hundred messages have eight times as many. */
const MOST_MESSAGE_NODES = 1600

const server = new Server()
let thread = ''

/** Rows without environments: nobody opens these sandboxes. */
const beside = (work: (db: Database) => void) => {
  using db = new Database(join(server.dataDirectory, 'threadbox.db'), { strict: true })
  db.run('pragma busy_timeout = 10000')
  // Begun by a read, it would fail when the server writes in between.
  db.transaction(() => work(db)).immediate()
}

beforeAll(async () => {
  await server.start()
  const sandboxId = await server.sandbox()
  await (await server.chat('Message 0', { sandboxId })).text()
  const { id } = (await server.ask('GET', `/v1/sandboxes/${sandboxId}`)).body.threads[0]
  thread = `/sandboxes/${sandboxId}/threads/${id}`
  beside(db => {
    const team = db.query<{ id: string }, []>("select id from teams where name = 'default'").get()
    for (let at = 0; at < SANDBOXES; at++)
      insertSandbox(db, {
        id: newId('sbx'),
        teamId: team?.id ?? '',
        agentSlug: 'echo',
        agentName: `Many ${at}`,
        environmentId: `none-${at}`,
        backend: 'nsjail',
        status: 'active',
        envs: {},
        cwd: '/home/user',
        network: {},
      })
    const add = db.query(
      `insert into messages (thread_id, id, position, role, parts, created_at)
       values ($thread, $id, $position, $role, $parts, '2026-01-01T00:00:00.000Z')`,
    )
    for (let at = 2; at < MESSAGES; at++) {
      // Of many heights, so that no estimate is right.
      const lines = Array.from({ length: (at * 7) % 13 }, (_, line) => `- line ${line}`).join('\n')
      const parts = [{ type: 'text', text: `Message ${at}: **bold**\n\n${lines}\n\n\`\`\`ts\nconst a = ${at}\n\`\`\`` }]
      add.run({
        thread: id,
        id: `msg_${String(at).padStart(6, '0')}`,
        position: at + 10,
        role: at % 2 === 0 ? 'user' : 'assistant',
        parts: JSON.stringify(parts),
      })
    }
  })
}, 60_000)
afterAll(async () => {
  beside(db => db.query("delete from sandboxes where environment_id like 'none-%'").run())
  await server.close()
}, 60_000)

const { open } = useConsole(server)

/** Whether all messages near the screen are drawn, and two frames have passed since. */
const isDrawn = `new Promise(resolve => {
  const near = [...document.querySelectorAll('.message')].filter(each => {
    const { top, bottom } = each.getBoundingClientRect()
    return bottom > -1000 && top < innerHeight + 1000
  })
  const drawn = near.every(each => !each.matches('.far'))
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(drawn)))
})`

const nodes = (page: Page) => page.evaluate<number>('document.querySelectorAll("*").length')
/** Where the first message that is seen whole is on the screen, and what it says. */
const anchor = (page: Page) =>
  page.evaluate<{ text: string; top: number }>(`(() => {
    const seen = [...document.querySelectorAll('.message')].find(each => each.getBoundingClientRect().top >= 0)
    window.anchor = seen
    window.oldest = document.querySelector('.message')
    return { text: seen.textContent.slice(0, 40), top: seen.getBoundingClientRect().top }
  })()`)

test('of ten thousand sandboxes, only those that are seen are on the page', async () => {
  const { page } = await open({ path: '/sandboxes' })
  await page.getByText(`Many ${SANDBOXES - 1}`, { exact: true }).waitFor()
  const most: number[] = []
  await page.mouse.move(640, 400)
  // By the wheel, then by keys, each to where the next page has to be read.
  for (let step = 0; step < 30; step++) {
    await page.mouse.wheel(0, 1000)
    most.push(await nodes(page))
  }
  await until(() => page.evaluate('scrollY > 10000'))
  while (!(await page.getByText('Many 9200', { exact: true }).isVisible())) {
    await page.keyboard.press('PageDown')
    most.push(await nodes(page))
    if (most.length > 1000) throw new Error('the list does not go on')
  }
  expect(Math.max(...most)).toBeLessThan(MOST_ROW_NODES)
  expect(await page.locator('.windowed > li').count()).toBeLessThan(60)
}, 120_000)

test('earlier messages come before what is read, which stays where it is: regression', async () => {
  const { page } = await open({ path: thread })
  await page.getByText(`Message ${MESSAGES - 1}:`).waitFor()
  await until(() => page.evaluate('document.documentElement.scrollHeight - innerHeight - scrollY < 200'))
  const first = await nodes(page)
  // At the very top browsers do not keep the place by themselves.
  for (const at of [0, 250, 0, 700, 0]) {
    const count = await page.locator('.message').count()
    await page.evaluate(`scrollTo(0, ${at})`)
    await until(() => page.evaluate(`scrollY === ${at}`))
    // What a jump has brought near is drawn a moment later.
    await until(() => page.evaluate(isDrawn))
    const before = await anchor(page)
    await page.locator('.earlier').evaluate((button: { click(): void }) => button.click())
    await until(async () => (await page.locator('.message').count()) === count + 100)
    // What is near is drawn in the frames after that, and has other heights than were guessed.
    await until(() => page.evaluate("window.oldest.previousElementSibling?.matches('.message:not(.far)') ?? false"))
    const after = await page.evaluate<number>(`new Promise(resolve => {
      // The browser keeps the place at the end of a frame.
      const frames = left => requestAnimationFrame(() => (left > 0 ? frames(left - 1) : resolve(window.anchor.getBoundingClientRect().top)))
      frames(5)
    })`)
    expect(Math.abs(after - before.top)).toBeLessThanOrEqual(1)
    expect((await page.evaluate<string>('window.anchor.textContent')).slice(0, 40)).toBe(before.text)
  }
  expect(await page.locator('.message').count()).toBe(600)
  // Messages from long ago are empty boxes until they come near.
  expect((await nodes(page)) - first).toBeLessThan(MOST_MESSAGE_NODES)
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight / 2)')
  await until(() =>
    page.evaluate(`(() => {
      const seen = [...document.querySelectorAll('.message')].filter(each => {
        const { top, bottom } = each.getBoundingClientRect()
        return bottom > 0 && top < innerHeight
      })
      return seen.length > 0 && seen.every(each => each.textContent.includes('Message'))
    })()`),
  )
}, 120_000)
