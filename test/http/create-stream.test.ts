import { expect, test } from 'bun:test'
import { createValueFilter, withoutValues } from '../../src/core/agents/without-values.ts'
import { useApp } from '../support/app.ts'
import { processesNamed, readText, tracesOf } from '../support/leftovers.ts'
import { eventsOf, readChunks } from '../support/sse.ts'
import { until } from '../support/until.ts'

const app = useApp()
const create = (body: object, signal?: AbortSignal) =>
  app.request('POST', '/v1/sandboxes', {
    body: { agent: 'echo', ...body },
    headers: { accept: 'text/event-stream' },
    ...(signal && { signal }),
  })

test('a create as events tells its stages and what set-up commands print, then gives the sandbox', async () => {
  const response = await create({ files: { '/tmp/a': 'a' }, setup: ['echo one', 'echo two >&2'] })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const events = (await readChunks(response)).filter(({ type }) => type !== 'progress')
  expect(events).toEqual([
    { type: 'stage', stage: 'environment' },
    { type: 'stage', stage: 'files' },
    { type: 'stage', stage: 'setup', number: 1, of: 2 },
    { type: 'stdout', data: 'one\n' },
    { type: 'stage', stage: 'setup', number: 2, of: 2 },
    { type: 'stderr', data: 'two\n' },
    { type: 'ready', sandbox: expect.objectContaining({ status: 'active' }) },
  ])
  const { sandbox } = events.at(-1)
  const { body } = await app.ask('GET', `/v1/sandboxes/${sandbox.id}`)
  expect([body.sandboxId, body.createdAt]).toEqual([sandbox.sandboxId, sandbox.createdAt])
  expect(Object.keys(sandbox)).toEqual(Object.keys((await app.ask('POST', '/v1/sandboxes', { agent: 'echo' })).body))
})

test('the output of a set-up command comes while it runs', async () => {
  const marker = `sleep-${crypto.randomUUID()}`
  const abort = new AbortController()
  const events = eventsOf(await create({ setup: [`echo begun; exec -a ${marker} sleep 1000`] }, abort.signal))
  for await (const { data } of events) if (data.type === 'stdout') break
  abort.abort()
  await until(async () => processesNamed(marker).length === 0)
})

test('a client that goes away ends the create, and nothing of it is left', async () => {
  const marker = `sleep-${crypto.randomUUID()}`
  const before = app.environmentIds.length
  const abort = new AbortController()
  const response = await create({ setup: [`exec -a ${marker} sleep 1000`] }, abort.signal)
  const reader = response.body!.getReader()
  void reader.read().catch(() => {})
  await until(async () => processesNamed(marker).length > 0)
  abort.abort()
  await until(async () => processesNamed(marker).length === 0)
  for (const id of app.environmentIds.slice(before)) await until(async () => (await tracesOf(id)).length === 0)
})

test('a set-up command that fails ends the events with its error', async () => {
  const events = await readChunks(await create({ setup: ['echo broken >&2; exit 3'] }))
  expect(events.slice(-2)).toEqual([
    { type: 'stderr', data: 'broken\n' },
    {
      type: 'error',
      code: 'setup_failed',
      message: 'The set-up command 1 of 1 (echo …) ended with exit code 3: broken',
    },
  ])
})

test('a request that is wrong has its ordinary answer', async () => {
  const unknown = await create({ agent: 'no-such' })
  expect([unknown.status, ((await unknown.json()) as { error: { code: string } }).error.code]).toEqual([
    404,
    'agent_not_found',
  ])
  expect((await create({ setup: 'x' })).status).toBe(400)
})

test('values of variables are in no event, also not where output is cut regression', async () => {
  const secret = 'tea-for-two-and-two-for-tea'
  const parts = [secret.slice(0, 9), secret.slice(9)]
  const command = `printf '%s' '${parts[0]}'; sleep 0.2; printf '%s end' '${parts[1]}'; echo "$OF_AGENT" >&2; exit 1`
  app.agent('with-secret', { envs: { OF_AGENT: secret } })
  const events = await readChunks(await create({ agent: 'with-secret', setup: [command] }))
  const text = (type: string) =>
    events
      .filter(event => event.type === type)
      .map(({ data }) => data)
      .join('')
  expect(text('stdout')).toBe('[OF_AGENT] end')
  expect(text('stderr')).toBe('[OF_AGENT]\n')
  expect(events.at(-1).message).toContain('[OF_AGENT]')
  expect(JSON.stringify(events)).not.toContain(secret)
})

test('a value that the cut of an error would halve is in no event and no log: regression', async () => {
  const secret = 'coffee-in-the-morning'
  app.agent('halved', { envs: { HALVED: secret } })
  const command = 'printf "%s" "$HALVED"; printf "%01990d" 0; exit 1'
  const events = await readChunks(await create({ agent: 'halved', setup: [command] }))
  expect(events.at(-1).message).toContain('0000')
  const { logs } = (await app.ask('GET', '/v1/agents/halved/logs')).body
  expect(logs.at(-1).text).toContain('0000')
  expect(JSON.stringify([events, logs])).not.toContain('morning')
})

test('a reader that takes nothing holds the set-up command up', async () => {
  const abort = new AbortController()
  const marker = `head-${crypto.randomUUID()}`
  const size = 300_000_000
  const response = await create({ setup: [`yes | exec -a ${marker} head -c ${size}`] }, abort.signal)
  const reader = response.body!.getReader()
  const printed = () => {
    const [pid] = processesNamed(marker)
    return Number(/wchar: (\d+)/.exec(readText(`/proc/${pid}/io`))?.[1] ?? 0)
  }
  await until(async () => printed() > 0)
  await reader.read()
  // It stands still: what it has printed stays the same from one look to the next.
  await until(async () => {
    const before = printed()
    await Bun.sleep(200)
    return before > 0 && printed() === before
  })
  expect(printed()).toBeLessThan(size)
  abort.abort()
  await until(async () => processesNamed(marker).length === 0)
})

test('many long values hold nothing up: regression', () => {
  const values = Array.from({ length: 1000 }, (_, index) => 'ab'.repeat(2 + (index % 400)) + (index % 2 ? index : ''))
  const variables = Object.fromEntries(values.map((value, index) => [`V${index}`, value]))
  const filter = createValueFilter(variables)
  const begun = performance.now()
  // It took a minute.
  for (let pieces = 0; pieces < 32; pieces++) expect(filter.push('ab'.repeat(32_768))).not.toContain('abab')
  expect(withoutValues('ab'.repeat(1_000_000), variables)).not.toContain('abab')
  expect(performance.now() - begun).toBeLessThan(10_000)
})

test('a filter hides what values have in common with each other', () => {
  // Each text of up to eight characters over two letters, against a search that tries each place.
  const variables = { A: 'aaba', B: 'abab', C: 'babaab', D: 'abaaba', E: 'bbbb' }
  for (let number = 2; number < 512; number++) {
    const text = number.toString(2).slice(1).replaceAll('0', 'a').replaceAll('1', 'b')
    const isHidden = Array.from(text, () => false)
    for (const value of Object.values(variables))
      for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1))
        isHidden.fill(true, at, at + value.length)
    const shown = Array.from(text, (char, at) => (isHidden[at] ? '' : char)).join('')
    expect(withoutValues(text, variables).replaceAll(/\[.\]/g, '')).toBe(shown)
  }
})

test('a filter hides values however the text is cut', () => {
  const variables = { A: 'abcd', LONG: 'abcdefgh', B: 'cdxy', SAME: 'zzzz' }
  for (const text of ['1abcd2', '-abcdefgh-', 'abcdef', 'abcdxy!', 'zzzzzzzzz.', 'abc', 'ab abcd cdxy']) {
    const whole = createValueFilter(variables)
    const expected = whole.push(text) + whole.end()
    for (let size = 1; size < text.length; size++) {
      const filter = createValueFilter(variables)
      let shown = ''
      for (let at = 0; at < text.length; at += size) shown += filter.push(text.slice(at, at + size))
      expect(shown + filter.end()).toBe(expected)
    }
    for (const value of Object.values(variables)) expect(expected).not.toContain(value)
  }
  const filter = createValueFilter(variables)
  expect(filter.push('1abcd2') + filter.end()).toBe(withoutValues('1abcd2', variables))
})
