import { beforeAll, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { RateLimitError, Sandbox } from 'e2b'
import { useApp } from '../support/app.ts'
import { until } from '../support/until.ts'
import { e2bOptions } from './client.ts'
import { useOptions } from './sdks.ts'

const app = useApp()
const options = useOptions(app)
let sandbox: Sandbox
let access: Record<string, string>

const tokenOf = (of: Sandbox): string => (of as unknown as { envdAccessToken: string }).envdAccessToken
const headersOf = (of: Sandbox) => ({ 'e2b-sandbox-id': of.sandboxId, 'x-access-token': tokenOf(of) })

beforeAll(async () => {
  sandbox = await Sandbox.create('base', options)
  access = headersOf(sandbox)
})

const frame = (payload: Uint8Array | string, flags = 0, length = Buffer.byteLength(payload)) => {
  const head = Buffer.alloc(5)
  head[0] = flags
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, Buffer.from(payload as string)])
}

const post = (path: string, body: Bun.BodyInit, headers: Record<string, string> = {}) =>
  fetch(`${app.url}/${path}`, { method: 'POST', headers: { ...access, ...headers }, body })

const unary = async (procedure: string, message: object | string, headers: Record<string, string> = {}) => {
  const body = typeof message === 'string' ? message : JSON.stringify(message)
  const response = await post(procedure, body, { 'content-type': 'application/json', ...headers })
  return { status: response.status, body: (await response.json()) as any }
}

/** A stream's messages, and what its last frame has. */
async function streaming(procedure: string, body: Bun.BodyInit, headers: Record<string, string> = {}) {
  const response = await post(procedure, body, { 'content-type': 'application/connect+json', ...headers })
  const bytes = Buffer.from(await response.bytes())
  const messages: any[] = []
  for (let at = 0; at < bytes.byteLength; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1)
    const message = JSON.parse(bytes.toString('utf8', at + 5, end))
    if (bytes[at] === 2) return { status: response.status, messages, end: message }
    messages.push(message)
    at = end
  }
  throw new Error('a stream without an end')
}

const start = (command: string, more: object = {}) =>
  frame(JSON.stringify({ process: { cmd: '/bin/bash', args: ['-c', command] }, ...more }))
const kinds = (messages: any[]) => messages.map(({ event }) => Object.keys(event)[0])

describe('the Connect protocol', () => {
  test('a stream has its start, its data, its end and the frame of the end', async () => {
    const { status, messages, end } = await streaming('process.Process/Start', start('printf hello; exit 3'))
    expect([status, end]).toEqual([200, {}])
    expect(kinds(messages)).toEqual(['start', 'data', 'end'])
    expect(Buffer.from(messages[1].event.data.stdout, 'base64').toString()).toBe('hello')
    const why = 'exit status 3'
    expect(messages[2].event.end).toEqual({ exitCode: 3, exited: true, status: why, error: why })
  })

  test('a stream that fails ends with a frame, and is no failed request', async () => {
    const refusals: [string | Uint8Array, string][] = [
      [frame('{'), 'invalid_argument'],
      [frame('[]'), 'invalid_argument'],
      [frame('{"process":{}}'), 'invalid_argument'],
      [frame('{"process":{"cmd":"/none"}}'), 'invalid_argument'],
      [frame('{"process":{"cmd":"true","args":[1]}}'), 'invalid_argument'],
      [frame('{"process":{"cmd":"true","envs":{"A=B":"c"}}}'), 'invalid_argument'],
      [frame('{"process":{"cmd":"true"},"pty":{"size":{"cols":0,"rows":5}}}'), 'invalid_argument'],
      [frame(`{"process":${'['.repeat(100_000)}`), 'invalid_argument'],
      [frame('{}', 128), 'invalid_argument'],
      [frame('{}', 1), 'internal'],
      [frame('{}', 0, 4_000_000_000), 'resource_exhausted'],
      [frame('{}', 0, 3_000_000), 'invalid_argument'],
      [Buffer.concat([start('true'), start('true')]), 'unimplemented'],
      [new Uint8Array(), 'unimplemented'],
      [new Uint8Array(3), 'invalid_argument'],
      [new Uint8Array(6 * 1024 * 1024), 'resource_exhausted'],
    ]
    for (const [body, code] of refusals) {
      const { status, messages, end } = await streaming('process.Process/Start', body as never)
      expect([status, messages, end.error?.code]).toEqual([200, [], code])
    }
    const lost = await streaming('process.Process/Connect', frame('{"process":{"pid":999999}}'))
    expect(lost.end.error).toEqual({ code: 'not_found', message: 'process with pid 999999 not found' })
  })

  test('messages may be compressed with gzip, and with nothing else', async () => {
    const packed = gzipSync('{"path":"/etc/hostname"}')
    const found = await unary('filesystem.Filesystem/Stat', packed as never, { 'content-encoding': 'gzip' }).catch(
      () => undefined,
    )
    const raw = await post('filesystem.Filesystem/Stat', packed, {
      ...{ 'content-type': 'application/json', 'content-encoding': 'gzip' },
    })
    expect([found?.status ?? 200, ((await raw.json()) as any).entry.name]).toEqual([expect.any(Number), 'hostname'])
    const { messages } = await streaming('process.Process/Start', frame(gzipSync(start('true').subarray(5)), 1), {
      'connect-content-encoding': 'gzip',
    })
    expect(kinds(messages)).toEqual(['start', 'end'])
    const bomb = await streaming('process.Process/Start', frame(gzipSync(Buffer.alloc(64 * 1024 * 1024)), 1), {
      'connect-content-encoding': 'gzip',
    })
    expect(bomb.end.error.code).toBe('resource_exhausted')
    const unknown = await streaming('process.Process/Start', start('true'), { 'connect-content-encoding': 'br' })
    expect(unknown.end.error.code).toBe('unimplemented')
  })

  test('a procedure with one message has its errors as statuses', async () => {
    expect(await unary('filesystem.Filesystem/Stat', { path: 'none' })).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
    expect(await unary('filesystem.Filesystem/Stat', '{')).toMatchObject({
      status: 400,
      body: { code: 'invalid_argument' },
    })
    expect(await unary('filesystem.Filesystem/Stat', { path: 7 })).toMatchObject({ status: 400 })
    expect(await unary('filesystem.Filesystem/Stat', { path: 'a\0b' })).toMatchObject({ status: 400 })
    expect(await unary('filesystem.Filesystem/Stat', { path: '~other/x' })).toMatchObject({ status: 400 })
    expect(await unary('filesystem.Filesystem/ListDir', { path: '/', depth: -1 })).toMatchObject({ status: 400 })
    expect(await unary('filesystem.Filesystem/Dream', {})).toMatchObject({
      status: 501,
      body: { code: 'unimplemented' },
    })
    expect(await unary('process.Process/toString', {})).toMatchObject({ status: 501 })
    expect(await unary('process.Process/SendSignal', { process: { pid: 1 }, signal: 'SIGNAL_SIGKILL' })).toMatchObject({
      status: 404,
    })
    expect(await unary('process.Process/List', 'x'.repeat(5 * 1024 * 1024))).toMatchObject({ status: 429 })
    const types = await Promise.all([
      post('process.Process/List', '{}', { 'content-type': 'application/proto' }),
      post('process.Process/Start', '{}', { 'content-type': 'application/json' }),
    ])
    expect(types.map(({ status }) => status)).toEqual([415, 415])
    const got = await fetch(`${app.url}/process.Process/List`, { headers: access })
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST'])
  })

  test('a silent stream says that it is alive', async () => {
    const { messages } = await streaming('process.Process/Start', start('sleep 1.3'), {
      'keepalive-ping-interval': '1',
    })
    expect(kinds(messages)).toContain('keepalive')
  })

  test('a process is named by its tag, and is sent input as a stream', async () => {
    const running = streaming('process.Process/Start', start('head -c 200000 | wc -c', { tag: 'counts' }))
    await until(async () => (await unary('process.Process/List', {})).body.processes.length === 1)
    expect((await unary('process.Process/List', {})).body.processes[0]).toMatchObject({
      tag: 'counts',
      config: { cmd: '/bin/bash', args: ['-c', 'head -c 200000 | wc -c'], envs: {} },
    })
    const stdin = Buffer.alloc(50_000, 'x').toString('base64')
    const data = frame(JSON.stringify({ data: { input: { stdin } } }))
    const first = frame('{"start":{"process":{"tag":"counts"}}}')
    const sent = await streaming(
      'process.Process/StreamInput',
      Buffer.concat([first, frame('{"keepalive":{}}'), data, data, data, data, frame('{}', 2)]),
    )
    expect([sent.messages, sent.end]).toEqual([[{}], {}])
    const { messages } = await running
    expect(Buffer.from(messages[1].event.data.stdout, 'base64').toString()).toBe('200000\n')
    const without = await streaming('process.Process/StreamInput', data)
    expect(without.end.error.code).toBe('invalid_argument')
  })

  test('endless input to a process that does not read waits for it, and ends with it', async () => {
    const running = streaming('process.Process/Start', start('sleep 60', { tag: 'deaf' }))
    await until(async () => (await unary('process.Process/List', {})).body.processes.length === 1)
    let taken = 0
    const data = frame(JSON.stringify({ data: { input: { stdin: Buffer.alloc(1_000_000).toString('base64') } } }))
    const endless = new ReadableStream<Uint8Array>({
      start: controller => controller.enqueue(frame('{"start":{"process":{"tag":"deaf"}}}')),
      pull(controller) {
        taken++
        controller.enqueue(data)
      },
    })
    const sending = streaming('process.Process/StreamInput', endless)
    await until(() => taken > 1)
    await Bun.sleep(300)
    const before = taken
    const { body } = await unary('process.Process/SendSignal', { process: { tag: 'deaf' }, signal: 'SIGNAL_SIGKILL' })
    expect(body).toEqual({})
    expect(['failed_precondition', 'not_found']).toContain((await sending).end.error.code)
    expect((await running).messages.at(-1).event.end.status).toBe('signal: killed')
    expect(before).toBeLessThan(60)
  })

  test('watchers are polled, and end with their removal', async () => {
    const watched = '/home/user/polled'
    await unary('filesystem.Filesystem/MakeDir', { path: watched })
    const { watcherId } = (await unary('filesystem.Filesystem/CreateWatcher', { path: watched, includeEntry: true }))
      .body
    const seen: any[] = []
    await sandbox.files.write('polled/a', 'four')
    await until(async () => {
      seen.push(...(await unary('filesystem.Filesystem/GetWatcherEvents', { watcherId })).body.events)
      return seen.some(({ type }) => type === 'EVENT_TYPE_WRITE')
    })
    expect(seen[0]).toMatchObject({ name: 'a', type: 'EVENT_TYPE_CREATE', entry: { size: '4', path: `${watched}/a` } })
    const other = await Sandbox.create('base', options)
    const foreign = await unary('filesystem.Filesystem/GetWatcherEvents', { watcherId }, headersOf(other))
    expect(foreign).toMatchObject({ status: 404 })
    await other.kill()
    expect((await unary('filesystem.Filesystem/RemoveWatcher', { watcherId })).body).toEqual({})
    expect(await unary('filesystem.Filesystem/GetWatcherEvents', { watcherId })).toMatchObject({ status: 404 })
    const many = await Promise.all(
      Array.from({ length: 40 }, () => unary('filesystem.Filesystem/CreateWatcher', { path: watched })),
    )
    expect(many.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(32)
    for (const { body } of many)
      if (body.watcherId) await unary('filesystem.Filesystem/RemoveWatcher', { watcherId: body.watcherId })
  })
})

describe('what else is asked of a sandbox', () => {
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(app.url + path, { headers: { ...access, ...headers } })

  test('files are joined to one', async () => {
    await sandbox.files.write([
      { path: 'part1', data: 'one ' },
      { path: 'part2', data: 'two' },
    ])
    const body = JSON.stringify({ destination: 'whole', source_paths: ['part1', 'part2'] })
    const joined = await post('files/compose', body, { 'content-type': 'application/json' })
    expect(await joined.json()).toEqual({ name: 'whole', path: '/home/user/whole', type: 'file' })
    expect(await sandbox.files.read('whole')).toBe('one two')
    expect(await sandbox.files.exists('part1')).toBe(false)
    const missing = await post('files/compose', JSON.stringify({ destination: 'x', source_paths: ['none'] }))
    expect([missing.status, await sandbox.files.exists('x')]).toEqual([404, false])
  })

  test('its variables and what it uses', async () => {
    const own = await Sandbox.create('base', { ...options, envs: { OWN: 'own' } })
    expect(await (await get('/envs', headersOf(own))).json()).toEqual({ OWN: 'own' })
    await own.kill()
    expect(await (await get('/metrics')).json()).toMatchObject({
      cpu_count: 2,
      mem_total_mib: 2048,
      ts: expect.any(Number),
    })
    expect((await get('/health')).status).toBe(204)
    expect((await get('/none')).status).toBe(404)
  })

  test('a body that is no form, and metadata that cannot be kept, are refused', async () => {
    const upload = async (body: Bun.BodyInit, headers: Record<string, string> = {}, query = '?path=refused') => {
      const response = await post(`files${query}`, body, headers)
      return [response.status, ((await response.json()) as { code: number }).code]
    }
    const form = { 'content-type': 'multipart/form-data; boundary=x' }
    expect(await upload('nothing', form)).toEqual([400, 400])
    expect(await upload('--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\ncut', form)).toEqual([
      400, 400,
    ])
    expect(await upload('x', { 'content-type': 'application/octet-stream' }, '')).toEqual([400, 400])
    expect(await upload('x', { 'content-encoding': 'br' })).toEqual([400, 400])
    expect(await upload('not gzip', { 'content-encoding': 'gzip' })).toEqual([400, 400])
    expect(await upload('x', { 'x-metadata-a': 'x'.repeat(5000) })).toEqual([400, 400])
    expect(await upload('x', { [`x-metadata-${'k'.repeat(250)}`]: 'v' })).toEqual([400, 400])
    const twice = new FormData()
    twice.append('file', new Blob(['1']), 'same')
    twice.append('file', new Blob(['2']), '/home/user/same')
    expect(await upload(twice, {}, '')).toEqual([400, 400])
    expect(await sandbox.files.exists('refused')).toBe(false)
  })

  test('a disk that is full is said to be', async () => {
    const endless = new ReadableStream<Uint8Array>({
      pull: controller => controller.enqueue(new Uint8Array(1024 * 1024)),
    })
    app.agent('small', { limits: { diskMb: 16 } })
    const small = await Sandbox.create('small', options)
    const response = await post('files?path=full', endless, {
      ...headersOf(small),
      'content-type': 'application/octet-stream',
    })
    expect([response.status, ((await response.json()) as { code: number }).code]).toEqual([507, 507])
    expect(await small.files.exists('full')).toBe(false)
    await small.kill()
  })
})

describe('who may not', () => {
  const stat = (headers: Record<string, string>) =>
    fetch(`${app.url}/filesystem.Filesystem/Stat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"path":"/"}',
    }).then(({ status }) => status)

  test('a token opens its own sandbox and no other regression', async () => {
    const foreign = await Sandbox.create('base', e2bOptions(app, 'other'))
    expect(await stat(access)).toBe(200)
    expect(await stat({ 'x-access-token': tokenOf(sandbox) })).toBe(200)
    expect(await stat({ ...access, 'x-access-token': tokenOf(foreign) })).toBe(401)
    expect(await stat({ ...headersOf(foreign), 'x-access-token': tokenOf(sandbox) })).toBe(401)
    expect(await stat({ 'e2b-sandbox-id': sandbox.sandboxId })).toBe(401)
    expect(await stat({ 'e2b-sandbox-id': sandbox.sandboxId, 'x-api-key': options.apiKey })).toBe(401)
    expect(await stat({ ...access, 'x-access-token': `${tokenOf(sandbox)}x` })).toBe(401)
    await foreign.kill()
    expect([401, 502]).toContain(await stat(headersOf(foreign)))
  })

  test('a signature of another sandbox, or of no time, opens nothing regression', async () => {
    await sandbox.files.write('secret', 'mine')
    const other = await Sandbox.create('base', options)
    const url = new URL(await sandbox.downloadUrl('secret', { useSignatureExpiration: 60 }))
    const status = async (change: (url: URL) => void, headers: Record<string, string> = {}) => {
      const changed = new URL(url)
      change(changed)
      return (await fetch(changed, { headers })).status
    }
    expect(await status(() => {})).toBe(200)
    expect(await status(() => {}, { 'e2b-sandbox-id': other.sandboxId })).toBe(401)
    expect(await status(each => each.searchParams.delete('signature_expiration'))).toBe(401)
    expect(await status(each => each.searchParams.set('signature', 'v1_'))).toBe(401)
    expect(await status(each => each.searchParams.append('path', '/etc/passwd'))).toBe(200)
    expect(await status(each => each.searchParams.set('path', '../../etc/passwd'))).toBe(401)
    await other.kill()
  })
})

test('what a key has under way counts, and what is above is refused in the words of the protocol', async () => {
  const limited = e2bOptions(app, 'limited', { 'key.execs': '1', 'key.streams': '1' })
  const own = await Sandbox.create('base', limited)
  await own.files.makeDir('watched')
  const running = await own.commands.run('sleep 60', { background: true })
  await expect(own.commands.run('true')).rejects.toBeInstanceOf(RateLimitError)
  await running.kill()
  const watch = await own.files.watchDir('watched', () => {})
  await expect(own.files.watchDir('watched', () => {})).rejects.toBeInstanceOf(RateLimitError)
  await watch.stop()
  await until(() =>
    own.commands.run('true').then(
      () => true,
      () => false,
    ),
  )
  await own.kill()
})
