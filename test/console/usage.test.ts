import { Database } from 'bun:sqlite'
import { beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { insertThread } from '../../src/db/threads.ts'
import { command, temporaryDirectory } from '../support/server.ts'
import { type OpenOptions, useConsole } from './console.ts'

const flags = ['--day-budget-usd', '1000', '--key-day-budget-usd', '400', '--thread-budget-usd', '50']
const { server, open } = useConsole({ flags })
const THREADS = 10_000
let sandboxId = ''

beforeAll(async () => {
  const directory = temporaryDirectory()
  const agent = {
    slug: 'bound',
    name: 'Bound',
    engine: 'echo',
    options: { maxAgentBudgetUsd: 40, maxSandboxBudgetUsd: 500 },
  }
  await Bun.write(join(directory, 'bound.json'), JSON.stringify(agent))
  expect((await command(['agents', 'apply', directory, '--data-dir', server.dataDirectory])).code).toBe(0)
  sandboxId = (await server.ask('POST', '/v1/sandboxes', { agent: 'bound' })).body.id
  await (
    await server.request('POST', '/v1/chat/bound', {
      body: { sandboxId, messages: [{ role: 'user', parts: [{ type: 'text', text: '/fail' }] }] },
    })
  ).text()
  const keyId = (await server.ask('GET', '/v1/me')).body.id
  using db = new Database(join(server.dataDirectory, 'threadbox.db'), { strict: true })
  db.run('pragma busy_timeout = 10000')
  db.transaction(() => {
    const { teamId } = db
      .query<{ teamId: string }, [string]>('select team_id as teamId from sandboxes where id = ?')
      .get(sandboxId)!
    const add = db.query(
      `insert into model_calls (id, team_id, key_id, agent_slug, sandbox_id, thread_id, run_id, provider, model, status,
         input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, started_at, duration_ms)
       values ($id, $teamId, $keyId, 'bound', $sandboxId, $threadId, 'run_1', 'anthropic', $model, 'completed', 100, 10, 0, 0, $usd, $at, 5)`,
    )
    for (let at = 0; at < THREADS; at++) {
      const threadId = insertThread(db, { sandboxId, name: `Thread ${at}` }).id
      const model = at % 2 === 0 ? 'claude-sonnet-4-6' : 'claude-haiku-4-5'
      add.run({
        id: `call_${at}`,
        teamId,
        keyId,
        sandboxId,
        threadId,
        model,
        usd: at === 7 ? 30.002 : 0.002,
        at: new Date().toISOString(),
      })
    }
  }).immediate()
})

const looks: OpenOptions[] = [{ scheme: 'light' }, { scheme: 'dark' }, { width: 390 }]
for (const look of looks) {
  const how = look.scheme ?? 'small'
  test(`usage and budgets are in nobody’s way: ${how}`, async () => {
    const opened = await open({ path: '/usage', ...look })
    const { page } = opened
    await page.getByRole('list', { name: 'Budgets' }).getByRole('listitem').first().waitFor()
    await page.getByRole('row', { name: /bound/ }).waitFor()
    await page.locator('.plot canvas').waitFor()
    expect(await opened.accessibility()).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    await opened.picture(`usage-budgets-${how}`)
  })
  test(`the overview tells costs and failures: ${how}`, async () => {
    const opened = await open({ ...look })
    const { page } = opened
    await page.getByText('$50.00 today, $50.00 this month').waitFor()
    await page.getByRole('list', { name: 'Latest failures' }).getByText('it was asked to').waitFor()
    await page.getByRole('figure', { name: 'By model' }).locator('summary').click()
    await page.getByRole('row', { name: 'anthropic/claude-haiku-4-5 $40.00 $40.00' }).waitFor()
    expect(await opened.accessibility()).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    await opened.picture(`overview-costs-${how}`)
  })
}

test('a budget tells how far it is used, and where it is of', async () => {
  const { page } = await open({ path: '/usage' })
  const budgets = page.getByRole('list', { name: 'Budgets' })
  const texts = [
    '$50.00 of $1,000.00 (5 %)',
    '$50.00 of $400.00 (12 %)',
    'used up$50.00 of $40.00 (125 %)',
    '$50.00 of $500.00 (10 %)',
  ]
  for (const text of texts) await budgets.getByRole('listitem').filter({ hasText: text }).waitFor()
  await budgets.getByRole('listitem').filter({ hasText: 'Thread 7' }).getByText('$30.00 of $50.00 (60 %)').waitFor()
  await budgets.getByRole('link', { name: 'Bound', exact: true }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Bound' }).waitFor()
})

test('ten thousand threads are listed, those that cost most first, and drawn a part at a time', async () => {
  const { page } = await open({ path: '/usage' })
  await page.getByRole('combobox', { name: /^By/ }).selectOption('thread')
  const table = page.getByRole('table')
  await page
    .getByRole('row', { name: /^Thread 7 / })
    .first()
    .waitFor()
  expect(await table.getAttribute('aria-rowcount')).toBe(String(THREADS + 1))
  expect(await table.locator('tbody tr').count()).toBeLessThan(100)
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
  await page.locator(`tr[aria-rowindex="${THREADS + 1}"]`).waitFor()
  expect(await table.locator('tbody tr').count()).toBeLessThan(100)
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save as CSV' }).click(),
  ])
  const lines = readFileSync(await download.path(), 'utf8')
    .trim()
    .split('\r\n')
  expect(lines.length).toBe(THREADS + 1)
  expect(lines[0]).toBe('key,calls,inputTokens,outputTokens,cacheReadTokens,cacheWriteTokens,costUsd,name,sandboxId')
  expect(lines[1]).toEndWith(`,1,100,10,0,0,30.002,Thread 7,${sandboxId}`)
})

test('each grouping names what it is of', async () => {
  const { page } = await open({ path: '/usage' })
  for (const [by, name] of [
    ['model', /anthropic\/claude-haiku-4-5 5,000/],
    ['key', /10,000/],
    ['day', new RegExp(new Date().toISOString().slice(0, 10))],
    ['agent', /^bound 10,000/],
  ] as const) {
    await page.getByRole('combobox', { name: /^By/ }).selectOption(by)
    await page.getByRole('main').getByRole('row', { name }).first().waitFor()
  }
})
