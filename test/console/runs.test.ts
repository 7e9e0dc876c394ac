import { Database } from 'bun:sqlite'
import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '../support/until.ts'
import { type OpenOptions, useConsole } from './console.ts'

const { server, open } = useConsole()
let thread = ''
let runId = ''
const WORDS = 40

beforeAll(async () => {
  const sandboxId = await server.sandbox()
  const response = await server.chat(`/slow ${WORDS}`, { sandboxId })
  const threadId = response.headers.get('x-thread-id') ?? ''
  runId = response.headers.get('x-run-id') ?? ''
  thread = `/sandboxes/${sandboxId}/threads/${threadId}`
  await response.text()
  await (await server.chat('/fail', { sandboxId, threadId })).text()
})

/** Changes the run's events in the database, beside the server. */
function change(sql: string): void {
  using db = new Database(join(server.dataDirectory, 'threadbox.db'))
  db.run('pragma busy_timeout = 10000')
  db.query(sql).run(runId)
}

const looks: OpenOptions[] = [{ scheme: 'light' }, { scheme: 'dark' }, { width: 390 }]
const views = [
  ['runs', '/runs', 'Runs'],
  ['replay', '', 'Run'],
  ['run-events', '/events', 'Run'],
] as const

for (const [name, path, heading] of views) {
  for (const look of looks) {
    const how = look.scheme ?? 'small'
    test(`${name} is in nobody’s way: ${how}`, async () => {
      const opened = await open({ path: `${thread}/runs${name === 'runs' ? '' : `/${runId}${path}`}`, ...look })
      const { page } = opened
      await page.getByRole('heading', { level: 1, name: heading }).waitFor()
      if (name === 'runs') await page.getByRole('list', { name: 'Runs' }).getByRole('listitem').nth(1).waitFor()
      if (name === 'replay') await page.getByRole('button', { name: 'To the end' }).click()
      if (name === 'run-events') await page.getByText('text-start').waitFor()
      expect(await opened.accessibility()).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
      await opened.picture(`${name}-${how}`)
    })
  }
}

test('from a conversation by the keyboard to its runs, and to the events of one', async () => {
  const { page } = await open({ path: thread })
  const press = async (name: string | RegExp) => {
    await page.getByRole('link', { name }).first().focus()
    await page.keyboard.press('Enter')
  }
  await press('Runs')
  await page.getByText('The echo engine fails because it was asked to.').waitFor()
  const rows = page.getByRole('list', { name: 'Runs' }).getByRole('listitem')
  expect(await rows.count()).toBe(2)
  await rows.nth(1).getByRole('link').focus()
  await page.keyboard.press('Enter')
  await page.getByText('completed').waitFor()
  await press(/^Events/)
  await page.locator('summary', { hasText: 'text-start' }).focus()
  await page.keyboard.press('Enter')
  await page.locator('pre', { hasText: '"type": "text-start"' }).waitFor()
})

test('a reply is played as it came: it begins, waits, goes on faster, and jumps', async () => {
  const { page } = await open({ path: `${thread}/runs/${runId}` })
  const reply = page.getByRole('article', { name: 'The reply so far' })
  const moment = page.getByRole('slider', { name: 'Moment of the run' })
  const last = new RegExp(`\\b${WORDS}\\b`)
  await reply.getByText('Play shows the reply as it came.').waitFor()
  const duration = Number(await moment.getAttribute('max'))
  expect(duration).toBeGreaterThan(0)
  await page.getByRole('button', { name: 'Play' }).click()
  await reply.getByText(/\b3\b/).waitFor()
  await page.getByRole('button', { name: 'Pause' }).click()
  const at = await moment.inputValue()
  const shown = await reply.textContent()
  if (Number(at) < duration) expect(shown).not.toMatch(last)
  await page.getByRole('radio', { name: '16×' }).check()
  await page.getByRole('button', { name: 'Play' }).click()
  await reply.getByText(last).waitFor()
  await page.getByRole('button', { name: 'Play' }).waitFor()
  // Back to the beginning, one event after the other, and to the end.
  await moment.fill('0')
  await until(async () => !last.test((await reply.textContent()) ?? ''))
  const early = (await reply.textContent()) ?? ''
  await page.getByRole('button', { name: 'Next event' }).click()
  expect(((await reply.textContent()) ?? '').length).toBeGreaterThanOrEqual(early.length)
  await moment.focus()
  await page.keyboard.press('End')
  await reply.getByText(last).waitFor()
  expect(await page.getByRole('button', { name: 'To the end' }).isDisabled()).toBe(true)
})

test('a run whose events are gone says so, and one without times is played all the same', async () => {
  change('update run_chunks set at_ms = null where run_id = ?')
  const { page } = await open({ path: `${thread}/runs/${runId}` })
  await page.getByText('The times of this run were not kept').waitFor()
  await page.getByRole('button', { name: 'To the end' }).click()
  await page
    .getByText(new RegExp(`\\b${WORDS}\\b`))
    .first()
    .waitFor()
  change('delete from run_chunks where run_id = ?')
  await page.reload()
  await page.getByText('The events of this run are gone').waitFor()
})

test('thousands of events are read to their end, and drawn a part at a time', async () => {
  const long = `run_${crypto.randomUUID()}`
  const events = 5000
  using db = new Database(join(server.dataDirectory, 'threadbox.db'))
  db.run('pragma busy_timeout = 10000')
  db.transaction(() => {
    db.query(
      `insert into runs (id, thread_id, sandbox_id, status, background, started_at, ended_at)
       select ?, thread_id, sandbox_id, 'completed', 0, started_at, strftime('%Y-%m-%dT%H:%M:%fZ', 'now') from runs where id = ?`,
    ).run(long, runId)
    const add = db.query('insert into run_chunks (run_id, seq, at_ms, chunk) values (?, ?, ?, ?)')
    add.run(long, 1, 1_000_000, '{"type":"text-start","id":"text-1"}')
    for (let seq = 2; seq <= events; seq++)
      add.run(long, seq, 1_000_000 + seq, JSON.stringify({ type: 'text-delta', id: 'text-1', delta: `${seq} ` }))
  }).immediate()
  const { page } = await open({ path: `${thread}/runs/${long}/events` })
  await page.getByRole('link', { name: `Events ${events}` }).waitFor()
  await page.getByText('+2 ms', { exact: true }).waitFor()
  expect(await page.locator('details.event').count()).toBeLessThan(100)
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
  await page.locator('details.event', { hasText: `"${events} "` }).waitFor()
  expect(await page.locator('details.event').count()).toBeLessThan(100)
  await page.getByRole('link', { name: 'Replay' }).click()
  await page.getByRole('button', { name: 'To the end' }).click()
  await page
    .getByText(new RegExp(`\\b${events}\\b`))
    .first()
    .waitFor()
})

test('what comes of a run that goes on is added, and its end is seen', async () => {
  const response = await server.chat('/slow 4000')
  const id = (name: string) => response.headers.get(`x-${name}-id`) ?? ''
  const conversation = `/sandboxes/${id('sandbox')}/threads/${id('thread')}`
  const reading = response.text()
  const { page } = await open({ path: `${conversation}/runs/${id('run')}/events` })
  await page.getByText('The run goes on: what comes is added here.').waitFor()
  const tab = page.getByRole('link', { name: /^Events/ })
  const shown = async () => Number((await tab.textContent())?.replace(/\D/g, ''))
  const before = await shown()
  await until(async () => (await shown()) > before)
  await server.ask('DELETE', `/v1/chat/echo/${id('sandbox')}/stream?threadId=${id('thread')}`)
  await reading
  await page.getByText('cancelled', { exact: true }).waitFor()
  await page.getByText('The run goes on').waitFor({ state: 'detached' })
  const { events } = (await server.ask('GET', `/v1/runs/${id('run')}/events?limit=1&after=${before}`)).body
  expect(events.length).toBe(1)
  const { body } = await server.ask('GET', `/v1/runs/${id('run')}/events?limit=999&after=0`)
  if (body.events.length < 999) await until(async () => (await shown()) === body.events.length)
})

test('of a run with much output a part is read, until more is asked for: regression', async () => {
  const id = (await server.ask('GET', `/v1/runs?limit=1&threadId=${thread.split('/').at(-1)}`)).body.runs[0].id
  const LARGE = 40
  {
    using db = new Database(join(server.dataDirectory, 'threadbox.db'))
    db.run('pragma busy_timeout = 10000')
    const chunk = JSON.stringify({ type: 'tool-output-available', toolCallId: 'a', output: 'x'.repeat(1_100_000) })
    db.transaction(() => {
      const add = db.query('insert into run_chunks (run_id, seq, at_ms, chunk) values (?, ?, 1, ?)')
      for (let seq = 0; seq < LARGE; seq++) add.run(id, 10_000 + seq, chunk)
    }).immediate()
  }
  const opened = await open()
  let pages = 0
  opened.page.on('response', response => void (response.url().includes(`${id}/events?`) && pages++))
  await opened.page.goto(`${thread}/runs/${id}`)
  // Each page has one large event.
  await until(() => pages >= 19)
  await opened.settled()
  expect(pages).toBeLessThan(25)
})
