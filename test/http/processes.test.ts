import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { processesNamed } from '../support/leftovers.ts'
import { eventsOf, readChunks, readEvents } from '../support/sse.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox({ envs: { OWN: 'sandbox' } })
})

const path = (rest = '') => `/v1/sandboxes/${id}/processes${rest}`
const ask = (method: string, rest = '', body?: unknown) => app.ask(method, path(rest), body)
const start = async (command: string | string[], fields: object = {}) => {
  const { status, body } = await ask('POST', '', { command, ...fields })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body
}
const output = async (pid: number, query = '', headers: Record<string, string> = {}) =>
  readEvents(await app.request('GET', path(`/${pid}/output${query}`), { headers }))
const eventsIn = async (pid: number, query = '') => (await output(pid, query)).map(({ data }) => data)
const ended = (pid: number) => until(async () => (await ask('GET', `/${pid}`)).body.status === 'exited')

test('a process is started, seen, read to its end and forgotten', async () => {
  const started = await start('echo $OWN $MORE; pwd', { envs: { MORE: 'more' }, cwd: '/tmp', name: 'first' })
  expect(started).toMatchObject({ command: 'echo $OWN $MORE; pwd', name: 'first', pty: null, stdin: false })
  const { pid } = started
  expect(await eventsIn(pid)).toEqual([
    { type: 'stdout', offset: 0, data: 'sandbox more\n/tmp\n' },
    { type: 'exit', exitCode: 0 },
  ])
  const { status, body } = await ask('GET', `/${pid}`)
  expect([status, body]).toEqual([
    200,
    { ...started, status: 'exited', exitCode: 0, outputEnd: 18, endedAt: expect.any(String) },
  ])
  expect(JSON.stringify(body)).not.toContain('MORE=')
  expect((await ask('GET')).body.processes).toContainEqual(body)
  expect((await ask('DELETE', `/${pid}`)).status).toBe(204)
  expect(codeOf(await ask('DELETE', `/${pid}`))).toBe('404 process_not_found')
  expect(codeOf(await ask('GET', `/${pid}/output`))).toBe('404 process_not_found')
})

test('arguments are taken as they are', async () => {
  const { pid, command } = await start(['printf', '%s|', 'a b', '$HOME'])
  expect([command, (await eventsIn(pid))[0].data]).toEqual(['printf %s| a b $HOME', 'a b|$HOME|'])
})

test('output is followed as it comes, and replayed from any offset', async () => {
  const { pid } = await start('echo one; until [ -e /tmp/two ]; do sleep 0.01; done; echo two >&2; exit 4')
  const events = eventsOf(await app.request('GET', path(`/${pid}/output`)))
  expect((await events.next()).value).toEqual({ id: '4', data: { type: 'stdout', offset: 0, data: 'one\n' } })
  expect(await eventsIn(pid, '?follow=false')).toEqual([{ type: 'stdout', offset: 0, data: 'one\n' }])
  await app.exec(id, 'touch /tmp/two')
  const rest = [
    { type: 'stderr', offset: 4, data: 'two\n' },
    { type: 'exit', exitCode: 4 },
  ]
  expect((await Array.fromAsync(events)).map(({ data }) => data)).toEqual([...rest, '[DONE]'])
  expect(await eventsIn(pid, '?offset=4')).toEqual(rest)
  expect(await eventsIn(pid, '?offset=6')).toEqual([{ type: 'stderr', offset: 6, data: 'o\n' }, rest[1]])
  expect(await eventsIn(pid, '?offset=999999')).toEqual([rest[1]])
  const resumed = await output(pid, '', { 'last-event-id': '4' })
  expect(resumed.map(({ data }) => data)).toEqual(rest)
})

describe('bytes and characters', () => {
  test('a character that is printed in two parts is one', async () => {
    const { pid } = await start(`printf 'a\\346\\274'; sleep 0.1; printf '\\242b'`)
    const events = await output(pid)
    expect(events.slice(0, -1)).toEqual([
      { id: '1', data: { type: 'stdout', offset: 0, data: 'a' } },
      { id: '5', data: { type: 'stdout', offset: 1, data: '漢b' } },
    ])
  })

  test('what is no text is exact in base64, and marked in text', async () => {
    const { pid } = await start(`printf '\\377\\000\\346'`)
    const [exact] = await eventsIn(pid, '?encoding=base64')
    expect(exact).toEqual({ type: 'stdout', offset: 0, data: Buffer.from([0xff, 0, 0xe6]).toString('base64') })
    const texts = (await eventsIn(pid)).filter(({ type }) => type === 'stdout')
    expect(texts.map(({ data }) => data).join('')).toBe('\ufffd\0\ufffd')
  })

  test('both streams stay in order', async () => {
    const { pid } = await start('for i in 1 2 3; do echo $i; sleep 0.05; echo $i >&2; sleep 0.05; done')
    const events = (await eventsIn(pid)).slice(0, -1)
    expect(events.map(({ type, data }) => `${type}${data.trim()}`)).toEqual(
      [1, 2, 3].flatMap(n => [`stdout${n}`, `stderr${n}`]),
    )
  })
})

describe('the ring', () => {
  test('a gigabyte that nobody reads holds nothing up and costs no memory', async () => {
    const guest = async () => Number(await app.shell(id, "awk '/VmRSS/ {print $2}' /proc/1/status"))
    const before = await guest()
    const { pid } = await start('head -c 1000000000 /dev/zero; printf end')
    // It would wait for a reader, and there is none.
    expect(await app.shell(id, 'echo alive')).toBe('alive\n')
    await ended(pid)
    expect((await guest()) - before).toBeLessThan(64 * 1024)
    const events = await eventsIn(pid)
    const [gap, first] = events
    expect(gap).toEqual({ type: 'gap', offset: first.offset })
    expect(gap.offset).toBe(1_000_000_003 - 1024 * 1024)
    const text = events.map(({ data = '' }) => data).join('')
    expect([text.length, text.slice(-4)]).toEqual([1024 * 1024, '\0end'])
  })

  test('what waits for its reader loses nothing', async () => {
    const { pid } = await start('seq 1000000', { waitForReader: true })
    await until(async () => (await ask('GET', `/${pid}`)).body.outputEnd > 100_000)
    const text = (await eventsIn(pid)).map(({ data = '' }) => data).join('')
    expect(Bun.hash(text)).toBe(Bun.hash(Array.from({ length: 1_000_000 }, (_, index) => `${index + 1}\n`).join('')))
  })

  test('and what waits for ever can be ended', async () => {
    const marker = `wait-${crypto.randomUUID()}`
    const { pid } = await start(`exec -a ${marker} yes`, { waitForReader: true })
    await until(async () => (await ask('GET', `/${pid}`)).body.outputEnd > 100_000)
    expect((await ask('DELETE', `/${pid}`)).status).toBe(204)
    expect(processesNamed(marker)).toEqual([])
  })

  test('a slow reader does not fill the server’s memory', async () => {
    const { pid } = await start('yes', { waitForReader: true })
    const response = await app.request('GET', path(`/${pid}/output`))
    const reader = response.body!.getReader()
    await reader.read()
    const end = async () => (await ask('GET', `/${pid}`)).body.outputEnd
    let seen = -1
    await until(async () => {
      const before = seen
      seen = await end()
      await Bun.sleep(100)
      return seen === before
    })
    expect(seen).toBeLessThan(64 * 1024 * 1024)
    await reader.cancel()
    expect((await ask('DELETE', `/${pid}`)).status).toBe(204)
  })
})

describe('input', () => {
  test('comes as JSON or as raw bytes, and is ended when told', async () => {
    const { pid } = await start('cat', { stdin: true })
    const sent = [
      await ask('POST', `/${pid}/stdin`, { data: 'text ' }),
      await ask('POST', `/${pid}/stdin`, { data: Buffer.from('base64 ').toString('base64'), encoding: 'base64' }),
      await app.ask('POST', path(`/${pid}/stdin`), Buffer.from('raw')),
      await ask('POST', `/${pid}/stdin`, { close: true }),
    ]
    expect(sent.map(({ status }) => status)).toEqual([204, 204, 204, 204])
    expect((await eventsIn(pid)).map(({ data = '' }) => data).join('')).toBe('text base64 raw')
    expect(codeOf(await ask('POST', `/${pid}/stdin`, { data: 'late' }))).toBe('409 conflict')
  })

  test('ends with its last bytes, also when these end the process before its stdin is closed', async () => {
    const answers: number[] = []
    for (let round = 0; round < 20; round++) {
      const { pid } = await start('read line', { stdin: true })
      answers.push((await ask('POST', `/${pid}/stdin`, { data: 'line\n', close: true })).status)
      expect((await ask('DELETE', `/${pid}`)).status).toBe(204)
    }
    expect(answers.filter(status => status !== 204)).toEqual([])
  })

  test('of any size is passed on at the pace of the process', async () => {
    const { pid } = await start('sha256sum', { stdin: true })
    const bytes = crypto.getRandomValues(new Uint8Array(65_536))
    let pieces = 0
    const body = new ReadableStream<Uint8Array>({
      pull: controller => (pieces++ < 320 ? controller.enqueue(bytes) : controller.close()),
    })
    expect((await app.request('POST', path(`/${pid}/stdin?close=true`), { body })).status).toBe(204)
    const hash = new Bun.CryptoHasher('sha256')
    for (let index = 0; index < 320; index++) hash.update(bytes)
    expect((await eventsIn(pid))[0].data).toBe(`${hash.digest('hex')}  -\n`)
  })

  test('that nobody reads ends with its sender', async () => {
    const { pid } = await start('sleep 1000', { stdin: true })
    const abort = new AbortController()
    const body = new Uint8Array(1_000_000)
    const sending = app.request('POST', path(`/${pid}/stdin`), { body, signal: abort.signal })
    await Bun.sleep(50)
    abort.abort()
    await expect(sending).rejects.toThrow()
    expect((await ask('DELETE', `/${pid}`)).status).toBe(204)
  })
})

test('signals reach the process, and the kill its whole tree', async () => {
  const marker = `sleep-${crypto.randomUUID()}`
  const polite = await start(`trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.02; done`)
  const fled = await start(`setsid -f bash -c 'exec -a ${marker} sleep 1000'; sleep 1000`)
  await until(
    async () => (await ask('GET', `/${polite.pid}`)).body.outputEnd > 0 && processesNamed(marker).length === 1,
  )
  expect((await ask('POST', `/${polite.pid}/signal`, { signal: 'TERM' })).status).toBe(204)
  expect((await eventsIn(polite.pid)).slice(-1)).toEqual([{ type: 'exit', exitCode: 9 }])
  expect((await ask('POST', `/${fled.pid}/signal`, { signal: 'SIGKILL' })).status).toBe(204)
  expect(await eventsIn(fled.pid)).toEqual([{ type: 'exit', exitCode: 137, signal: 'SIGKILL' }])
  await until(() => processesNamed(marker).length === 0)
  expect(codeOf(await ask('POST', `/${fled.pid}/signal`, { signal: 'TERM' }))).toBe('409 conflict')
})

test('a hundred run side by side, and one too many is refused', async () => {
  const own = await app.sandbox()
  const at = `/v1/sandboxes/${own}/processes`
  const startOne = (index: number) => app.ask('POST', at, { command: ['sh', '-c', `echo ${index}; exec sleep 1000`] })
  const started = await Promise.all(Array.from({ length: 128 }, (_, index) => startOne(index)))
  expect(started.filter(({ status }) => status === 201).length).toBe(128)
  expect(codeOf(await startOne(128))).toBe('409 conflict')
  const pids: number[] = started.map(({ body }) => body.pid)
  const texts = await Promise.all(
    pids.map(async pid => {
      await until(async () => (await app.ask('GET', `${at}/${pid}`)).body.outputEnd > 0)
      const [event] = await readChunks(await app.request('GET', `${at}/${pid}/output?follow=false`))
      return event.data
    }),
  )
  expect(texts).toEqual(pids.map((_, index) => `${index}\n`))
  await app.ask('POST', `${at}/${pids[5]}/signal`, { signal: 'KILL' })
  await until(async () => (await app.ask('GET', `${at}/${pids[5]}`)).body.status === 'exited')
  expect((await startOne(128)).status).toBe(201)
  expect(codeOf(await app.ask('GET', `${at}/${pids[5]}`))).toBe('404 process_not_found')
  expect((await app.ask('DELETE', `/v1/sandboxes/${own}`)).status).toBe(204)
})

test('a sandbox that is deleted ends its processes and who reads them', async () => {
  const own = await app.sandbox()
  const marker = `sleep-${crypto.randomUUID()}`
  const { body } = await app.ask('POST', `/v1/sandboxes/${own}/processes`, {
    command: `echo up; exec -a ${marker} sleep 1000`,
  })
  const events = eventsOf(await app.request('GET', `/v1/sandboxes/${own}/processes/${body.pid}/output`))
  await events.next()
  expect((await app.ask('DELETE', `/v1/sandboxes/${own}`)).status).toBe(204)
  expect(processesNamed(marker)).toEqual([])
  const rest = (await Array.fromAsync(events)).map(({ data }) => data)
  expect(rest).toEqual([expect.objectContaining({ type: 'error', code: 'sandbox_unavailable' }), '[DONE]'])
})

test('a reader that goes away ends nothing, unless it asked for that', async () => {
  const { pid } = await start('echo up; sleep 1000')
  for (const query of ['', '?hangup=true']) {
    const abort = new AbortController()
    const response = await app.request('GET', path(`/${pid}/output${query}`), { signal: abort.signal })
    await response.body!.getReader().read()
    abort.abort()
    if (query) await until(async () => (await ask('GET', `/${pid}`)).status === 404)
    else expect((await ask('GET', `/${pid}`)).body.status).toBe('running')
  }
})

describe('what is refused', () => {
  const rows: [string, () => Promise<any>, string][] = [
    ['no command', () => ask('POST', '', {}), '400 invalid_request'],
    ['an empty list', () => ask('POST', '', { command: [] }), '400 invalid_request'],
    [
      'a terminal without cells',
      () => ask('POST', '', { command: 'true', pty: { columns: 0, rows: 1 } }),
      '400 invalid_request',
    ],
    ['a directory that is not there', () => ask('POST', '', { command: 'true', cwd: '/no' }), '400 invalid_request'],
    ['a program that is not there', () => ask('POST', '', { command: ['/no'] }), '400 invalid_request'],
    ['a pid that is not there', () => ask('GET', '/99999'), '404 process_not_found'],
    ['a pid that is none', () => ask('GET', '/..%2f1'), '404 not_found'],
    ['an offset that is none', () => ask('GET', '/1/output?offset=-1'), '400 invalid_request'],
    ['another team’s look', () => app.ask('GET', path(), undefined, { key: app.foreignKey }), '404 sandbox_not_found'],
    ['no key', () => app.ask('GET', path(), undefined, { key: null }), '401 unauthorized'],
  ]
  test.each(rows)('%s', async (_, asked, code) => {
    expect(codeOf(await asked())).toBe(code)
  })

  test('what a process was not started for', async () => {
    const { pid } = await start('sleep 1000')
    const answers = [
      await ask('POST', `/${pid}/stdin`, { data: 'x' }),
      await ask('POST', `/${pid}/resize`, { columns: 1, rows: 1 }),
      await ask('POST', `/${pid}/signal`, { signal: 'SIGNONE' }),
      await ask('GET', `/${pid}/terminal`),
    ]
    expect(answers.map(codeOf)).toEqual(Array(4).fill('400 invalid_request'))
    await ask('DELETE', `/${pid}`)
  })

  test('a token of another end user', async () => {
    const { body } = await app.ask('POST', '/v1/tokens', { userId: 'somebody' })
    expect(codeOf(await app.ask('GET', path(), undefined, { key: body.token }))).toBe('404 sandbox_not_found')
  })
})
