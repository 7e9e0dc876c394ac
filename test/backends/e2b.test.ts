import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sandbox } from 'e2b'
import { createE2bBackend, type E2bOptions } from '../../plugins/e2b/index.ts'
import { readE2bId } from '../../src/core/e2b/ids.ts'
import { newId } from '../../src/db/id.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Backend, Environment, EnvironmentSpec, NetworkSpec } from '../../src/plugin-api/index.ts'
import { countSleepers } from '../../src/plugin-suite/sleepers.ts'
import type { Said } from '../support/faulty-proxy.ts'
import { leftovers } from '../support/leftovers.ts'
import { openThreadboxAsE2b, type ThreadboxAsE2b } from '../support/threadbox-as-e2b.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

const directory = mkdtempSync(join(tmpdir(), 'threadbox-e2b-test-'))
let e2b: ThreadboxAsE2b
let backend: Backend
const opened: Backend[] = []
const log: string[] = []

beforeAll(async () => {
  e2b = await openThreadboxAsE2b()
  backend = open()
})
beforeEach(() => {
  e2b.proxy.asked.length = 0
})
afterAll(async () => {
  for (const id of await backend.list()) await (await backend.open(id))?.destroy()
  for (const each of opened) await each.close()
  await e2b.close()
  rmSync(directory, { recursive: true, force: true })
})

function open(options: Partial<E2bOptions> = {}): Backend {
  const made = createE2bBackend({
    dataDirectory: directory,
    connection: e2b.variables,
    template: 'base',
    idleMs: 3_600_000,
    log: line => void log.push(line),
    ...options,
  })
  opened.push(made)
  return made
}

const create = (spec: Partial<EnvironmentSpec> = {}, from = backend): Promise<Environment> =>
  from.create({ id: newId('env'), limits: {}, ...spec })
const infoOf = ({ id }: Environment) => Sandbox.getInfo(e2b.idOf(id), e2b.options)
const isPaused = async (environment: Environment) => (await infoOf(environment)).state === 'paused'
/** As somebody else does with the same key. */
const pauseFromOutside = ({ id }: Environment) => Sandbox.pause(e2b.idOf(id), e2b.options)
const killFromOutside = ({ id }: Environment) => Sandbox.kill(e2b.idOf(id), e2b.options)
const shell = async (environment: Environment, command: string) =>
  (await runCommand(environment, { command, timeoutMs: 20_000 })).stdout

describe('a create', () => {
  test('names the template, the variables, the label, and that it is paused when its time is up', async () => {
    const environment = await create({ template: 'code-interpreter-v1', env: { TOKEN: 'abc' } })
    const { body } = e2b.proxy.asked.find(({ method, sandboxId }) => method === 'POST' && !sandboxId)!
    expect(body).toMatchObject({
      templateID: 'code-interpreter-v1',
      envVars: { TOKEN: 'abc' },
      metadata: { threadboxEnvironment: environment.id },
      timeout: 3600,
      autoPause: true,
      allow_internet_access: true,
      network: { allowPublicTraffic: false },
    })
    expect(environment.confinement).toContain('memory: 1024 MB, by the template')
    expect(await shell(environment, 'echo $TOKEN')).toBe('abc\n')
    await environment.destroy()
  })

  test('of a template that is not there says so', async () => {
    await expect(create({ template: 'nothing' })).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'There is no E2B template nothing.',
    })
  })

  test('without a key, or with one that is refused, says what to do', async () => {
    const keyless = open({ connection: {} })
    await expect(create({}, keyless)).rejects.toMatchObject({ message: expect.stringContaining('E2B_API_KEY') })
    const wrong = open({ connection: { ...e2b.variables, E2B_API_KEY: 'e2b_wrong' } })
    await expect(create({}, wrong)).rejects.toMatchObject({
      code: 'sandbox_unavailable',
      message: expect.stringContaining('E2B_API_KEY'),
    })
    const failed = async (each: Backend) => (await each.check()).filter(({ ok, required }) => required && !ok)
    expect((await failed(keyless)).map(({ remedy }) => remedy)).toEqual([
      'start with E2B_API_KEY, a key of your E2B project',
    ])
    expect((await failed(wrong)).map(({ name }) => name)).toEqual(['E2B'])
    expect(await failed(backend)).toEqual([])
  })
})

describe('a service that is busy', () => {
  const refusing = (status: number, count: number, headers = {}) => {
    let left = count
    e2b.proxy.answer = ({ sandboxId }): Said | undefined =>
      sandboxId === undefined && left-- > 0 ? { status, headers, body: { code: status, message: 'busy' } } : undefined
  }
  afterEach(() => {
    e2b.proxy.answer = () => undefined
    e2b.proxy.isLost = () => false
  })

  test.each([429, 500, 502, 503])('is asked again after %d', async status => {
    refusing(status, 2)
    const environment = await create()
    expect(await shell(environment, 'echo made')).toBe('made\n')
    await environment.destroy()
  })

  test('is given the time that it asks for', async () => {
    refusing(429, 1, { 'retry-after': '1' })
    const before = performance.now()
    await (await create()).destroy()
    expect(performance.now() - before).toBeGreaterThan(1000)
  })

  test('is given up in the end, and nothing is left', async () => {
    e2b.proxy.answer = ({ method }) =>
      method === 'POST' ? { status: 500, body: { code: 500, message: 'broken' } } : undefined
    const before = e2b.sandboxes().size
    await expect(create()).rejects.toMatchObject({ code: 'sandbox_unavailable' })
    expect(e2b.sandboxes().size).toBe(before)
  })

  test('makes one sandbox though its answer is lost', async () => {
    let isFirst = true
    e2b.proxy.isLost = ({ method, path }) => {
      const isLost = isFirst && method === 'POST' && path === '/v2/sandboxes'
      if (isLost) isFirst = false
      return isLost
    }
    const before = e2b.sandboxes().size
    const environment = await create()
    expect([e2b.sandboxes().size, await shell(environment, 'echo one')]).toEqual([before + 1, 'one\n'])
    await environment.destroy()
    expect(e2b.sandboxes().size).toBe(before)
  })

  test('is asked again by what is sent to a sandbox', async () => {
    const environment = await create()
    let left = 2
    e2b.proxy.answer = ({ sandboxId }) => (sandboxId !== undefined && left-- > 0 ? { status: 429 } : undefined)
    expect(await shell(environment, 'echo again')).toBe('again\n')
    left = 2
    await environment.files.write('/tmp/a', Buffer.from('again'))
    await environment.destroy()
  })
})

describe('the network', () => {
  const name = 'api.example.com'
  type Wanted = { allow: boolean; allowOut?: string[]; denyOut?: string[] }
  const rows: [string, NetworkSpec, Wanted, RegExp][] = [
    ['none', { mode: 'none', layers: [] }, { allow: false }, /^network: none$/],
    ['public', { mode: 'public', layers: [] }, { allow: true }, /what is public/],
    [
      'a list of names and ranges',
      { mode: 'public', layers: [{ allowOut: [name, '*.example.org', '192.0.2.0/24'] }] },
      { allow: true, allowOut: [name, '*.example.org', '192.0.2.0/24'], denyOut: ['0.0.0.0/0'] },
      /api\.example\.com/,
    ],
    [
      'two lists: what both allow, each time the narrower',
      {
        mode: 'public',
        layers: [{ allowOut: ['*.example.com', '192.0.2.0/24'] }, { allowOut: [name, 'other.net', '192.0.2.7'] }],
      },
      { allow: true, allowOut: [name, '192.0.2.7/32'], denyOut: ['0.0.0.0/0'] },
      /api/,
    ],
    [
      'lists with nothing in common',
      { mode: 'public', layers: [{ allowOut: ['a.com'] }, { allowOut: ['b.com'] }] },
      { allow: false, denyOut: ['0.0.0.0/0'] },
      /^network: none; not a\.com/,
    ],
    ['an empty list', { mode: 'public', layers: [{ allowOut: [] }] }, { allow: false }, /^network: none/],
    [
      'denied ranges',
      { mode: 'public', layers: [{ denyOut: ['192.0.2.0/24'] }] },
      { allow: true, denyOut: ['192.0.2.0/24'] },
      /but 192\.0\.2\.0\/24/,
    ],
    ['a denied name', { mode: 'public', layers: [{ denyOut: [name] }] }, { allow: false }, /cannot deny a name/],
    [
      'an allowed one that overlaps with a denied one',
      {
        mode: 'public',
        layers: [{ allowOut: ['*.example.com', 'a.com', '192.0.2.0/24'], denyOut: [name, '192.0.2.9'] }],
      },
      { allow: false },
      /not \*\.example\.com, a\.com, 192\.0\.2\.0\/24/,
    ],
    [
      'a name beside a denied range that is private anyway',
      { mode: 'public', layers: [{ allowOut: ['a.com'], denyOut: ['169.254.0.0/16'] }] },
      { allow: true, allowOut: ['a.com'], denyOut: ['0.0.0.0/0'] },
      /a\.com/,
    ],
    ['a port', { mode: 'public', layers: [{ allowOut: ['a.com:443'] }] }, { allow: false }, /not a\.com:443/],
  ]
  let environment: Environment
  beforeAll(async () => {
    environment = await create({ network: { mode: 'public', layers: [{ allowOut: ['first.com'] }] } })
  })
  afterAll(() => environment.destroy())

  /** What is sent, and what the sandbox is held to from then on. */
  const told = () => e2b.proxy.asked.findLast(({ path }) => path.endsWith('/network'))?.body
  const enforced = async () => {
    const id = readE2bId(e2b.idOf(environment.id))
    const { allowOut, denyOut } = (await e2b.app.ask('GET', `/v1/sandboxes/${id}`)).body.network
    return { allowOut, denyOut }
  }

  test('goes with the create', async () => {
    expect(await enforced()).toEqual({ allowOut: ['first.com'], denyOut: [] })
  })

  test.each(rows)('%s', async (_, spec, wanted, line) => {
    await environment.setNetwork?.(spec)
    const { allow_internet_access: allow, ...lists } = told()
    const { allowOut, denyOut } = wanted
    expect({ allow, ...lists }).toMatchObject(wanted)
    expect(lists.allowOut).toEqual(allowOut)
    const allowed = wanted.allow ? (allowOut ?? null) : []
    expect(await enforced()).toEqual({ allowOut: allowed, denyOut: allowed ? [] : (denyOut ?? []) })
    expect(environment.confinement.at(-1)).toMatch(line)
  })
})

describe('a sandbox that is not used', () => {
  test('is paused by E2B, and has its files at its next use', async () => {
    const environment = await create({}, open({ idleMs: 1500 }))
    await shell(environment, 'echo kept > /tmp/f')
    await until(() => isPaused(environment))
    expect(await shell(environment, 'cat /tmp/f')).toBe('kept\n')
    expect(await isPaused(environment)).toBe(false)
    await environment.destroy()
  })

  test('is kept while a command runs', async () => {
    const environment = await create({}, open({ idleMs: 1000 }))
    expect(await shell(environment, 'sleep 3; echo still here')).toBe('still here\n')
    expect(await isPaused(environment)).toBe(false)
    expect(e2b.proxy.asked.filter(({ path }) => path.endsWith('/timeout')).length).toBeGreaterThan(1)
    await environment.destroy()
  })
})

describe('a sandbox that somebody else', () => {
  test('paused is resumed', async () => {
    const environment = await create()
    await pauseFromOutside(environment)
    expect(await shell(environment, 'echo back')).toBe('back\n')
    await environment.destroy()
  })

  test('ended is said to be gone, and its commands are', async () => {
    const environment = await create()
    const child = await environment.spawn({ command: 'sleep 60' })
    await killFromOutside(environment)
    await expect(child.exited).rejects.toMatchObject({ code: 'sandbox_unavailable' })
    await expect(shell(environment, 'true')).rejects.toMatchObject({ code: 'sandbox_unavailable' })
    await expect(environment.files.read('/etc/passwd')).rejects.toMatchObject({ code: 'sandbox_unavailable' })
    await environment.destroy()
  })
})

describe('a command', () => {
  let environment: Environment
  beforeAll(async () => {
    environment = await create()
  })
  afterAll(() => environment.destroy())

  test('gets signals, as its whole group', async () => {
    const command = 'trap "echo got; exit 3" INT; echo ready; while :; do sleep 0.05; done'
    const child = await environment.spawn({ command })
    const reader = child.stdout.getReader()
    await reader.read()
    child.kill('SIGINT')
    const { value } = await reader.read()
    expect([Buffer.from(value!).toString(), await child.exited]).toEqual(['got\n', { exitCode: 3 }])
  })

  test('may list all processes without being taken for ended', async () => {
    const all = await shell(
      environment,
      'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline; tr "\\0" " " < $p/environ; done; echo whole',
    )
    expect(all).toEndWith('whole\n')
    expect(all).toContain('threadbox-call')
  })

  test('that is killed with its shell ends, and so does its tree', async () => {
    const child = await environment.spawn({ command: 'sleep 7301 & kill -9 $PPID; sleep 7301' })
    child.kill()
    expect(await child.exited).toMatchObject({ exitCode: 137, signal: 'SIGKILL' })
    await until(async () => (await countSleepers(environment, '7301')) === 0)
  })

  test('has a terminal of the size that it is told', async () => {
    const child = await environment.spawn({
      command: 'stty size; read line; stty size; echo "[$line]"',
      pty: { columns: 90, rows: 30 },
    })
    let text = ''
    const read = async () => {
      for await (const chunk of child.stdout) text += Buffer.from(chunk)
    }
    const seen = read()
    await until(() => text.startsWith('30 90\r\n'))
    child.resize?.({ columns: 100, rows: 40 })
    const keyboard = child.stdin!.getWriter()
    await until(async () => (await shell(environment, `stty size < /proc/${child.pid}/fd/0`)) === '40 100\n')
    await keyboard.write(Buffer.from('typed\n'))
    expect((await child.exited).exitCode).toBe(0)
    await seen
    expect(text).toContain('40 100\r\n[typed]')
  })

  test('in a terminal is killed with its tree', async () => {
    const child = await environment.spawn({ command: 'setsid sleep 7302 & sleep 7302', pty: { columns: 80, rows: 24 } })
    await until(async () => (await countSleepers(environment, '7302')) === 2)
    child.kill()
    await child.exited
    expect(await countSleepers(environment, '7302')).toBe(0)
  })
})

test('a connection passes a half-closed end on', async () => {
  const environment = await create()
  const server = [
    'import socket; s = socket.create_server(("127.0.0.1", 8130)); print("up", flush=True)',
    'c, _ = s.accept(); data = c.makefile("rb").read(); c.sendall(b"got %d" % len(data)); c.close()',
  ].join('\n')
  const child = await environment.spawn({ command: ['python3', '-c', server] })
  await child.stdout.getReader().read()
  const socket = await environment.connect(8130)
  socket.write(Buffer.alloc(300_000))
  socket.end()
  let answer = ''
  for await (const chunk of socket) answer += chunk
  expect(answer).toBe('got 300000')
  await environment.destroy()
})

test('another server ends what the last one had in the foreground, and leaves the rest', async () => {
  const environment = await create()
  await shell(environment, 'sleep 7401 > /dev/null 2>&1 &')
  const child = await environment.spawn({ command: 'setsid sleep 7402 & sleep 7402' })
  const next = await open().open(environment.id)
  expect([await countSleepers(next!, '7401'), await countSleepers(next!, '7402')]).toEqual([1, 0])
  await child.exited.catch(() => {})
  await environment.destroy()
})

test('of many sandboxes, which come in pages, all are found', async () => {
  const made = await Promise.all(Array.from({ length: 5 }, () => create()))
  // E2B's pages are as long as it likes.
  e2b.proxy.rewrite = path => path.replace(/^\/v2\/sandboxes\?/, '$&limit=2&')
  try {
    expect(await backend.list()).toEqual(expect.arrayContaining(made.map(({ id }) => id)))
    expect(e2b.proxy.asked.filter(({ path }) => path.startsWith('/v2/sandboxes?')).length).toBeGreaterThan(2)
  } finally {
    e2b.proxy.rewrite = path => path
  }
  for (const each of made) await each.destroy()
})

test('a command is told of no proxy: the sandbox has its own way out', async () => {
  const environment = await create()
  const child = await environment.spawn({ command: 'sleep 60' })
  const [started] = await (await Sandbox.connect(e2b.idOf(environment.id), e2b.options)).commands.list()
  expect(Object.keys(started!.envs)).toContain('HOME')
  expect(Object.keys(started!.envs).filter(name => /proxy/i.test(name))).toEqual([])
  child.kill()
  await child.exited
  await environment.destroy()
})

test('whoever uses another backend loads and asks nothing', async () => {
  const unused = open({ dataDirectory: join(directory, 'unused'), connection: {} })
  expect([await unused.list(), await unused.open(newId('env'))]).toEqual([[], undefined])
  expect(e2b.proxy.asked).toEqual([])
})

describe('code cells', () => {
  let environment: Environment
  beforeAll(async () => {
    environment = await create({ template: 'code-interpreter-v1' })
  })
  afterAll(() => environment.destroy())
  const chart = 'class Chart:\n  def _repr_png_(self): return b"\\x89PNG\\r\\n\\x1a\\n" + b"0" * 8\n'

  test('are there where the template has the interpreter', async () => {
    expect(await environment.code?.isThere()).toBe(true)
    const plain = await create()
    expect(await plain.code?.isThere()).toBe(false)
    await plain.destroy()
  })

  test('print, share their variables, and show a value and a chart', async () => {
    await environment.code?.run('x = 20', {})
    const { stdout, results } = await environment.code!.run('print("printed"); x + 1', {})
    expect([stdout, results]).toEqual(['printed\n', [{ text: '21', images: [] }]])
    const { results: shown } = await environment.code!.run(`${chart}Chart()`, {})
    expect(shown[0]?.images).toMatchObject([{ mediaType: 'image/png', data: expect.stringMatching(/^iVBORw0KGgo/) }])
  })

  test('that raise tell their error', async () => {
    const { error } = await environment.code!.run('1 / 0', {})
    expect(error).toMatchObject({ name: 'ZeroDivisionError', traceback: expect.stringContaining('division by zero') })
  })

  test('that take too long, or are aborted, are stopped', async () => {
    const endless = 'import time\nwhile True:\n  open("/tmp/cell", "a").write("x"); time.sleep(0.02)'
    const isGrowing = async () =>
      (await shell(environment, 'a=$(wc -c < /tmp/cell); sleep 0.3; [ $a = $(wc -c < /tmp/cell) ] || echo growing')) !==
      ''
    await expect(environment.code!.run(endless, { timeoutMs: 500 })).rejects.toMatchObject({ code: 'command_timeout' })
    expect(await isGrowing()).toBe(false)
    const abort = new AbortController()
    const reason = new Error('enough')
    const running = environment.code!.run(endless, { signal: abort.signal })
    await until(isGrowing)
    abort.abort(reason)
    await expect(running).rejects.toBe(reason)
    expect(await isGrowing()).toBe(false)
    expect((await environment.code!.run('1 + 1', {})).results).toEqual([{ text: '2', images: [] }])
  })
})

test('of two hundred made and deleted, nothing is left', async () => {
  const [before, begun] = [e2b.sandboxes().size, e2b.app.environmentIds.length]
  let made = 0
  const worker = async () => {
    while (made < 200) {
      made += 1
      await (await create()).destroy()
    }
  }
  await Promise.all(Array.from({ length: 4 }, worker))
  expect([e2b.sandboxes().size, e2b.app.environmentIds.length - begun]).toEqual([before, 200])
  expect(await leftovers(...e2b.app.environmentIds.slice(begun))).toEqual([])
}, 180_000)
