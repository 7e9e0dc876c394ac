import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { insertThread } from '../../src/db/threads.ts'
import { temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'
import { useConsole } from './console.ts'
import { expectText, payloads } from './payloads.ts'

const texts = Object.values(payloads)
/** A half letter does not come through UTF-8, and names may be of 1,000 characters: what a server takes for the name of anything. */
const names = texts.map(each => each.slice(0, 150).toWellFormed())
/** Linux has no command with longer arguments, and JSON none with half letters. */
const words = texts.map(each => each.toWellFormed())

const agents = temporaryDirectory()
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
const define = (slug: string, fields: object) =>
  writeFileSync(join(agents, `${slug}.json`), JSON.stringify({ slug, name: slug, engine: 'echo', ...fields }))
names.forEach((name, index) => {
  define(`named-${index}`, { name, systemPrompt: words[index] })
})
const prints = words.map(word => `printf '%s\\n' ${quoted(word)}`)
define('printing', { sandbox: { setup: [...prints.slice(0, -1), 'until [ -e /tmp/go ]; do sleep 0.05; done'] } })
define('failing', { sandbox: { setup: [`${prints.slice(0, -1).join('; ')}; exit 3`] } })

const { server, open } = useConsole({ flags: ['--agents', agents] })
afterAll(() => rmSync(agents, { recursive: true, force: true }))
let sandboxId = ''
let threadId = ''
let runId = ''
const beside = (work: (db: Database) => void) => {
  using db = new Database(join(server.dataDirectory, 'threadbox.db'), { strict: true })
  db.run('pragma busy_timeout = 10000')
  db.transaction(work).immediate(db)
}
const thread = () => `/sandboxes/${sandboxId}/threads/${threadId}`
/** What the assistant has said in the thread is this. */
const say = (parts: readonly object[]) =>
  beside(db =>
    db
      .query("update messages set parts = $parts where thread_id = $thread and role = 'assistant'")
      .run({ parts: JSON.stringify([...parts, { type: 'text', text: 'The end of it.' }]), thread: threadId }),
  )
const call = (toolName: string, input: unknown, output: unknown) => ({
  type: 'dynamic-tool',
  toolCallId: crypto.randomUUID(),
  state: 'output-available',
  ...{ toolName, input, output },
})

beforeAll(async () => {
  sandboxId = await server.sandbox()
  const response = await server.chat('Hello', { sandboxId })
  threadId = response.headers.get('x-thread-id') ?? ''
  runId = response.headers.get('x-run-id') ?? ''
  await response.text()
})

/** Kinds of calls, each with the text in all that a model or a tool has written. */
const calls: Readonly<Record<string, (text: string) => object[]>> = {
  Bash: text => [call('Bash', { command: text }, text)],
  Edit: text => [call('Edit', { file_path: text, old_string: text, new_string: `${text} changed` }, text)],
  Write: text => [call('Write', { file_path: text, content: text }, text)],
  Read: text =>
    ['ts', 'html', 'svg', 'md', 'sh'].map(ending => call('Read', { file_path: `${text}.${ending}` }, `     1→${text}`)),
  TodoWrite: text => [call('TodoWrite', { todos: [{ status: text, content: text }] }, text)],
  WebFetch: text => [call('WebFetch', { url: text, prompt: text }, [{ type: 'text', text }])],
  'another tool': text => [call(text, { [text]: text, url: text }, { [text]: [text] })],
  'a call that failed': text => [{ ...call('Bash', { command: text }, ''), state: 'output-error', errorText: text }],
}

/** Sequences that a terminal obeys are not of what it shows. */
const obeyed = payloads['sequences of terminals']
for (const [kind, make] of Object.entries(calls)) {
  test(`the input and output of a call are text: ${kind}: regression`, async () => {
    say(words.flatMap(make))
    const opened = await open({ path: thread() })
    const { page } = opened
    await page.getByText('The end of it.').waitFor()
    await page.evaluate('for (const each of document.querySelectorAll(".call")) each.open = true')
    if (kind === 'Read') await page.locator('.call pre code [class^=hljs]').first().waitFor()
    const isJson = kind === 'another tool'
    await expectText(
      opened,
      words.filter(text => text !== obeyed).map(text => (isJson ? JSON.stringify(text).slice(1, -1) : text)),
    )
  })
}

test('reasoning, sources, files and other parts of a message are text: regression', async () => {
  say(
    words.flatMap(text => [
      { type: 'reasoning', text },
      { type: 'source-url', sourceId: 'a', url: text, title: text },
      { type: 'file', mediaType: text, url: text, filename: text },
      { type: 'file', mediaType: 'text/html', url: `data:text/html,${encodeURIComponent(text)}`, filename: text },
      { type: `data-${text}`, data: text },
      { type: text, text },
    ]),
  )
  const opened = await open({ path: thread() })
  await opened.page.getByText('The end of it.').waitFor()
  await opened.page.evaluate('for (const each of document.querySelectorAll(".reasoning")) each.open = true')
  const addresses = await opened.page
    .locator('.message a[href^="data:"]')
    .evaluateAll(links => links.filter(link => !link.hasAttribute('download')).length)
  expect(addresses).toBe(0)
  await opened.page.evaluate(
    'for (const each of document.querySelectorAll("a[download]")) each.removeAttribute("href")',
  )
  await expectText(opened, words)
})

test('the titles of threads are text, also of one that is renamed meanwhile: regression', async () => {
  for (const name of names) beside(db => insertThread(db, { sandboxId, name }))
  await expectText(await open({ path: '/threads' }), names.slice(-5))
  await expectText(await open({ path: `/sandboxes/${sandboxId}` }), names)
  const opened = await open({ path: thread() })
  for (const name of names) {
    await server.ask('PATCH', `/v1${thread()}`, { name })
    await expectText(opened, [name])
  }
})

test('the names and prompts of agents are text: regression', async () => {
  for (const path of ['/agents', '/new']) await expectText(await open({ path }), names)
  const opened = await open({ path: '/agents' })
  for (const [index, name] of names.entries()) {
    await opened.page.goto(`/agents/named-${index}`)
    await expectText(opened, [name, words[index] ?? ''])
  }
})

test('names, commands and output of processes are text: regression', async () => {
  const id = await server.sandbox()
  const commands = words.map(word => ['printf', '%s', word])
  for (const [index, command] of commands.entries())
    expect((await server.ask('POST', `/v1/sandboxes/${id}/processes`, { name: names[index], command })).status).toBe(
      201,
    )
  const opened = await open({ path: `/sandboxes/${id}/processes` })
  await expectText(opened, [...names, ...words.map(word => `printf %s ${word}`)])
  for (const [index, word] of words.entries()) {
    await opened.page.getByRole('button', { name: 'Output' }).nth(index).click()
    const output = opened.page.getByRole('log')
    await until(async () => `${await output.textContent()}`.endsWith('[ended with 0]\n'))
    expect(words).toContain(((await output.textContent()) ?? '').replace('\n[ended with 0]\n', ''))
    await expectText(opened, [word])
  }
})

test('what a set-up prints is text, while it runs and when it has failed: regression', async () => {
  const running = await open({ path: '/new' })
  await running.page.getByRole('button', { name: /^printing/ }).click()
  await running.page.getByText(`Set-up command ${words.length} of ${words.length} runs…`).waitFor()
  await expectText(running, words.slice(0, -1))
  await running.page.getByRole('button', { name: 'Cancel' }).click()
  await running.page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' })
  const failing = await open({ path: '/new' })
  await failing.page.getByRole('button', { name: /^failing/ }).click()
  await failing.page.getByRole('alert').waitFor()
  await expectText(failing, [words.at(-2) ?? ''])
})

test('what programs ask the proxy for is text: regression', async () => {
  const id = await server.sandbox()
  await server.ask('PATCH', `/v1/sandboxes/${id}`, { networkAllowOut: ['a.example.com'] })
  const hosts = [...words.slice(0, -1), ...names.map(each => `${each.replaceAll(/\s/g, '')}.example`)]
  const files = Object.fromEntries(
    hosts.flatMap((host, index) => [
      [`/tmp/hosts/${index}-connect`, `CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
      [`/tmp/hosts/${index}-get`, `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`],
    ]),
  )
  for (const [path, content] of Object.entries(files))
    await server.ask('POST', `/v1/sandboxes/${id}/files`, { path, content })
  const ask =
    'for each in /tmp/hosts/*; do (exec 3<>/dev/tcp/127.0.0.1/3128; cat "$each" >&3; timeout 5 head -c 12 <&3); done'
  const { stdout } = await server.exec(id, `bash -c ${quoted(ask)}`)
  expect(stdout.match(/HTTP\/1\.1/g)?.length).toBeGreaterThan(hosts.length)
  const { decisions } = (await server.ask('GET', `/v1/sandboxes/${id}/network/decisions`)).body
  expect(decisions.length).toBeGreaterThan(0)
  const opened = await open({ path: `/sandboxes/${id}/network` })
  await expectText(
    opened,
    decisions.map(({ host, port }: any) => `${host}:${port}`),
  )
})

test('the names in usage are text: regression', async () => {
  beside(db => {
    const { teamId } = db.query<{ teamId: string }, []>('select team_id as teamId from sandboxes').get() as any
    names.forEach((model, index) => {
      const thread = insertThread(db, { sandboxId, name: model })
      db.query(
        `insert into model_calls (id, team_id, agent_slug, sandbox_id, thread_id, run_id, provider, model, status,
           input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, started_at, duration_ms)
         values ($id, $teamId, $model, $sandboxId, $threadId, $runId, 'anthropic', $model, 'completed', 1, 1, 0, 0, 1, $at, 5)`,
      ).run({ id: `call_${index}`, teamId, model, sandboxId, threadId: thread.id, runId, at: new Date().toISOString() })
    })
    db.query("update runs set error = $error, status = 'failed'").run({ error: words.join('\n') })
  })
  for (const name of names) expect((await server.ask('POST', '/v1/keys', { name })).status).toBe(201)
  const opened = await open({ path: '/usage' })
  // The table draws only the rows that are near what is seen.
  await opened.page.setViewportSize({ width: 1280, height: 4000 })
  for (const grouping of ['model', 'thread', 'agent']) {
    await opened.page.getByRole('combobox', { name: 'By' }).selectOption(grouping)
    await expectText(opened, names)
  }
  await expectText(await open({ path: '/' }), names.slice(0, 3))
  await expectText(await open({ path: '/settings' }), names)
})

test('the events of a run are text, and so is its replay: regression', async () => {
  const chunks = words.flatMap((text, index) => [
    { type: 'text-start', id: `${index}` },
    { type: 'text-delta', id: `${index}`, delta: text },
    { type: 'tool-input-start', toolCallId: `call-${index}`, toolName: text },
    { type: 'tool-input-available', toolCallId: `call-${index}`, toolName: text, input: { [text]: text } },
    { type: 'tool-output-available', toolCallId: `call-${index}`, output: text },
    { type: text, [text]: text },
  ])
  beside(db => {
    db.query('delete from run_chunks where run_id = $runId').run({ runId })
    const add = db.query('insert into run_chunks (run_id, seq, chunk, at_ms) values ($runId, $seq, $chunk, $at)')
    for (const [index, chunk] of chunks.entries())
      add.run({ runId, seq: index + 1, chunk: JSON.stringify(chunk), at: Date.now() })
  })
  const events = await open({ path: `${thread()}/runs/${runId}/events` })
  await expectText(
    events,
    words.slice(0, 2).map(word => JSON.stringify(word).slice(1, -1)),
  )
  for (const summary of (await events.page.locator('.event > summary').all()).slice(0, 6)) await summary.click()
  await expectText(events, [])
  const replay = await open({ path: `${thread()}/runs/${runId}` })
  await replay.page.getByRole('button', { name: 'To the end' }).click()
  await replay.page.getByText('begin 0123').first().waitFor()
  await expectText(replay, words.slice(0, 3))
})
