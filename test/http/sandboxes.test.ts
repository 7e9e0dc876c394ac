import { describe, expect, spyOn, test } from 'bun:test'
import { connect } from 'node:net'
import { removeExpired } from '../../src/core/sandboxes/sweep.ts'
import { useApp } from '../support/app.ts'
import { chat, startChat, threadOf } from '../support/chat.ts'
import { leftovers, processesNamed, tracesOf } from '../support/leftovers.ts'
import { until } from '../support/until.ts'

const app = useApp()
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

test('a create that fails says why, also where what it has made cannot be removed', async () => {
  const snapshotOf = await app.sandbox()
  await app.ask('POST', `/v1/sandboxes/${snapshotOf}/snapshots`, { name: 'whole' })
  for (const start of [{ agent: 'echo' }, { snapshot: 'whole' }]) {
    const { environments } = app.runtime
    const { destroy } = environments
    using _failing = spyOn(environments, 'destroy').mockImplementationOnce(async place => {
      await destroy(place)
      throw new Error('it is held')
    })
    const { status, body } = await app.ask('POST', '/v1/sandboxes', { ...start, setup: ['exit 3'] })
    expect([status, body.error.code]).toEqual([400, 'setup_failed'])
  }
  expect(app.log.join('\n')).toContain('it is held')
})

test('a list is narrowed to an agent, and to a part of an id', async () => {
  app.agent('listed')
  const [one, other] = [await app.sandbox({ agent: 'listed' }), await app.sandbox()]
  const idsOf = async (query: string) =>
    (await app.ask('GET', `/v1/sandboxes?${query}`)).body.sandboxes.map(({ id }: { id: string }) => id)
  expect(await idsOf('agent=listed')).toEqual([one])
  expect(await idsOf(`q=${other.slice(-8)}`)).toEqual([other])
  expect(await idsOf(`q=${other.slice(-8)}&agent=listed`)).toEqual([])
  const { token } = (await app.ask('POST', '/v1/tokens', { agent: 'echo' })).body
  const { body } = await app.ask('GET', '/v1/sandboxes?agent=listed', undefined, { key: token })
  expect(body.sandboxes).toEqual([])
})

describe('create', () => {
  test('answers the contract’s four fields', async () => {
    const { status, body } = await app.ask('POST', '/v1/sandboxes', { agent: 'echo' })
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^sbx_/),
      sandboxId: expect.stringMatching(/^env_/),
      status: 'active',
      createdAt: expect.stringMatching(isoTime),
    })
  })

  test('writes files at any absolute path before the set-up commands, which run in order with the variables', async () => {
    const id = await app.sandbox({
      files: { '/etc/app/config.ini': 'a=1\n', '/opt/deep/er/x.txt': 'ü', '/home/user/empty': '', '/top': 'top' },
      envs: { GREETING: 'hello "world"' },
      setup: ['cat /etc/app/config.ini /top > seen', 'echo "$GREETING" >> seen', 'pwd >> seen; whoami >> seen'],
    })
    const { stdout } = await app.exec(id, 'cat /home/user/seen /opt/deep/er/x.txt; wc -c < empty; echo "$GREETING"')
    expect(stdout).toBe('a=1\ntophello "world"\n/home/user\nroot\nü0\nhello "world"\n')
  })

  test('takes the agent’s defaults, and the request’s over them', async () => {
    app.agent('defaults', {
      files: { '/etc/both': 'agent', '/etc/agent': 'agent' },
      envs: { BOTH: 'agent', AGENT: 'agent' },
      setup: ['echo agent-1 > order', 'echo agent-2 >> order'],
      cwd: '/srv/work',
    })
    const id = await app.sandbox({
      agent: 'defaults',
      files: { '/etc/both': 'request', '/etc/request': 'request' },
      envs: { BOTH: 'request', REQUEST: 'request' },
      setup: ['echo request >> order'],
    })
    const { stdout } = await app.exec(id, 'pwd; cat order; echo $BOTH $AGENT $REQUEST; cat /etc/{both,agent,request}')
    expect(stdout).toBe('/srv/work\nagent-1\nagent-2\nrequest\nrequest agent request\nrequestagentrequest')
  })

  test('ignores fields it does not know', async () => {
    const { status } = await app.ask('POST', '/v1/sandboxes', {
      agent: 'echo',
      networkAllowOut: ['example.com'],
      surprise: { a: [1] },
    })
    expect(status).toBe(201)
  })

  const failures = [
    ['a set-up command fails', ['echo one', 'echo out; echo err >&2; exit 7', 'touch never'], { exitCode: 7 }],
    ['a set-up command does not exist', ['nothing-like-this'], { exitCode: 127 }],
    ['a set-up command kills itself', ['kill -9 $$'], { exitCode: 137 }],
  ] as const
  for (const [name, setup, details] of failures) {
    test(`fails when ${name}, and leaves nothing`, async () => {
      const rows = await rowCount()
      const marker = `sleep-${crypto.randomUUID()}`
      const background = `(exec -a ${marker} sleep 1000) >/dev/null 2>&1 &`
      const { status, body } = await app.ask('POST', '/v1/sandboxes', { agent: 'echo', setup: [background, ...setup] })
      expect(status).toBe(400)
      expect(body.error).toMatchObject({ code: 'setup_failed', ...details })
      expect(await leftovers(app.environmentIds.at(-1)!)).toEqual([])
      expect(processesNamed(marker)).toEqual([])
      expect(await rowCount()).toBe(rows)
    })
  }

  test('tells what a failing set-up command printed', async () => {
    const setup = ['echo to-stdout; echo to-stderr >&2; exit 3']
    const { body } = await app.ask('POST', '/v1/sandboxes', { agent: 'echo', setup })
    expect(body.error).toMatchObject({ stdout: 'to-stdout\n', stderr: 'to-stderr\n', exitCode: 3 })
    expect(body.message).toContain('to-stderr')
    expect(body.message).toBe(body.error.message)
  })

  const unwritable = [
    ['a directory', { '/etc': 'x' }],
    ['below a file', { '/a': 'x', '/a/b': 'y' }],
    ['a device', { '/dev/null': 'x' }],
    ['read-only', { '/usr/bin/new': 'x' }],
  ] as const
  for (const [name, files] of unwritable) {
    test(`fails when a file's path is ${name}, and leaves nothing`, async () => {
      const { status, body } = await app.ask('POST', '/v1/sandboxes', { agent: 'echo', files })
      expect(status).toBe(400)
      expect(body.error.code).toBe('invalid_request')
      expect(await leftovers(app.environmentIds.at(-1)!)).toEqual([])
    })
  }

  test('leaves nothing when its client goes away during set-up', async () => {
    const marker = `sleep-${crypto.randomUUID()}`
    const abort = new AbortController()
    const creating = app.request('POST', '/v1/sandboxes', {
      body: { agent: 'echo', setup: [`exec -a ${marker} sleep 1000`] },
      signal: abort.signal,
    })
    creating.catch(() => {})
    await until(() => processesNamed(marker).length > 0)
    abort.abort()
    await until(() => tracesOf(app.environmentIds.at(-1)!).length === 0)
    expect(processesNamed(marker)).toEqual([])
  })

  test('makes many at once, each on its own', async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, (_, n) => app.sandbox({ files: { '/n': `${n}` } })))
    const read = await Promise.all(ids.map(async id => (await app.exec(id, 'cat /n')).stdout))
    expect(read).toEqual(['0', '1', '2', '3', '4', '5', '6', '7'])
  })
})

describe('get', () => {
  test('has every field of the contract and of the clients', async () => {
    const created = (await app.ask('POST', '/v1/sandboxes', { agent: 'echo' })).body
    const first = (await app.ask('POST', `/v1/sandboxes/${created.id}/threads`, { name: 'first' })).body
    const second = (await app.ask('POST', `/v1/sandboxes/${created.id}/threads`, {})).body
    const { status, body } = await app.ask('GET', `/v1/sandboxes/${created.id}`)
    expect(status).toBe(200)
    expect(body).toEqual({
      ...created,
      error: null,
      name: null,
      isRunning: true,
      cwd: '/home/user',
      variables: [],
      secrets: [],
      use: expect.objectContaining({ memoryBytes: expect.any(Number), diskBytes: expect.any(Number) }),
      limits: { memoryMb: 2048, processes: 512, cpus: 2, diskMb: 10_240 },
      agent: { slug: 'echo', name: 'Echo' },
      provider: 'nsjail',
      threads: [
        { id: second.id, name: null, status: 'active' },
        { id: first.id, name: 'first', status: 'active' },
      ],
      isolation: { kind: 'namespaces', details: expect.arrayContaining([expect.stringMatching(/^network: loopback/)]) },
      network: { mode: 'public', allowOut: null, denyOut: [], decisions: { allowed: 0, refused: 0 } },
      updatedAt: expect.stringMatching(isoTime),
    })
  })
})

test('a key sees the names of a sandbox’s variables, a token not even those, and nobody their values', async () => {
  const id = await app.sandbox({ envs: { TOKEN: 'swordfish', COLOUR: 'blue' } })
  const { body } = await app.ask('GET', `/v1/sandboxes/${id}`)
  expect(body.variables).toEqual(['COLOUR', 'TOKEN'])
  const { token } = (await app.ask('POST', '/v1/tokens', {})).body
  const seen = (await app.ask('GET', `/v1/sandboxes/${id}`, undefined, { key: token })).body
  expect(seen.variables).toBeNull()
  expect(JSON.stringify([body, seen])).not.toContain('swordfish')
})

describe('list', () => {
  test('pages through all, newest first', async () => {
    const made = [await app.sandbox(), await app.sandbox(), await app.sandbox()]
    const first = (await app.ask('GET', '/v1/sandboxes?limit=2')).body
    const second = (await app.ask('GET', `/v1/sandboxes?limit=2&before=${first.nextBefore}`)).body
    const ids = [...first.sandboxes, ...second.sandboxes].map(({ id }: any) => id)
    expect(ids.slice(0, 3)).toEqual(made.reverse())
    expect(first.sandboxes).toHaveLength(2)
    expect(first.sandboxes[0]).toMatchObject({ status: 'active', agent: { slug: 'echo' }, provider: 'nsjail' })
  })

  test('has no next page after its last', async () => {
    expect((await app.ask('GET', '/v1/sandboxes?limit=999')).body.nextBefore).toBeNull()
  })
})

describe('delete', () => {
  test('answers 204 without a body once processes, files and threads are gone; mounts and cgroups follow', async () => {
    const { body } = await app.ask('POST', '/v1/sandboxes', { agent: 'echo' })
    const marker = `sleep-${crypto.randomUUID()}`
    const spread = `exec -a ${marker} sleep 1000`
    await app.exec(
      body.id,
      `(${spread}) & setsid -f bash -c '${spread}'; env -i /usr/bin/setsid -f bash -c '${spread}'`,
    )
    await app.ask('POST', `/v1/sandboxes/${body.id}/threads`, {})
    await until(() => processesNamed(marker).length === 3)

    const response = await app.request('DELETE', `/v1/sandboxes/${body.id}`)
    expect(await leftovers(body.sandboxId)).toEqual([])
    expect(processesNamed(marker)).toEqual([])
    expect(response.status).toBe(204)
    expect(await response.text()).toBe('')
    expect(app.beside(db => db.query('select count(*) as n from threads where sandbox_id = ?').get(body.id))).toEqual({
      n: 0,
    })
  })

  test('of one that is deleted already is 404, as is all else on it', async () => {
    const id = await app.sandbox()
    expect((await app.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
    for (const [method, path] of [
      ['DELETE', ''],
      ['GET', ''],
      ['GET', '/threads'],
      ['GET', '/files?path=/etc/hosts'],
    ] as const) {
      const { status, body } = await app.ask(method, `/v1/sandboxes/${id}${path}`)
      expect({ status, code: body.error.code }).toEqual({ status: 404, code: 'sandbox_not_found' })
    }
  })

  test('twice at once deletes once, and both answer when all is gone', async () => {
    const { body } = await app.ask('POST', '/v1/sandboxes', { agent: 'echo' })
    const both = [1, 2].map(() => app.ask('DELETE', `/v1/sandboxes/${body.id}`))
    const statuses = (await Promise.all(both)).map(({ status }) => status).sort()
    expect(await leftovers(body.sandboxId)).toEqual([])
    expect(statuses[0]).toBe(204)
    expect([204, 404]).toContain(statuses[1]!)
  })

  test('ends a command that runs in it, which is told so', async () => {
    const id = await app.sandbox()
    const marker = `sleep-${crypto.randomUUID()}`
    const running = app.ask('POST', `/v1/sandboxes/${id}/exec`, { command: `exec -a ${marker} sleep 1000` })
    await until(() => processesNamed(marker).length > 0)
    expect((await app.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
    const { status, body } = await running
    expect(status).toBeOneOf([404, 503])
    expect(body.error.code).toBeOneOf(['sandbox_not_found', 'sandbox_unavailable'])
  })
})

describe('a sandbox’s two ids are taken alike', () => {
  const uses: [string, string, unknown?][] = [
    ['GET', '/v1/sandboxes/:id'],
    ['POST', '/v1/sandboxes/:id/exec', { command: 'true' }],
    ['POST', '/v1/sandboxes/:id/files', { path: '/a', content: 'b' }],
    ['GET', '/v1/sandboxes/:id/files?path=/a'],
    ['GET', '/v1/sandboxes/:id/threads'],
    ['POST', '/v1/sandboxes/:id/threads', {}],
    ['GET', '/v1/chat/echo/:id/stream'],
    ['DELETE', '/v1/chat/echo/:id/stream'],
    ['POST', '/v1/chat/echo', { sandboxId: ':id', messages: [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }] }],
    ['DELETE', '/v1/sandboxes/:id'],
  ]
  for (const [method, path, body] of uses) {
    test(`${method} ${path}`, async () => {
      for (const name of ['id', 'sandboxId'] as const) {
        const sandbox = (await app.ask('POST', '/v1/sandboxes', { agent: 'echo', files: { '/a': 'b' } })).body
        const filled = body && JSON.parse(JSON.stringify(body).replace(':id', sandbox[name]))
        const { status } = await app.ask(method, path.replace(':id', sandbox[name]), filled)
        expect(status).toBeWithin(200, 300)
      }
    })
  }
})

test('its time to live begins again with each use, and when it is over all of it is gone', async () => {
  const { body } = await app.ask('POST', '/v1/sandboxes', { agent: 'echo', timeoutMs: 3_600_000 })
  const kept = await app.sandbox()
  const lastUsed = (at: number) =>
    app.beside(db =>
      db.run('update sandboxes set last_used_at = ? where id = ?', [new Date(at).toISOString(), body.id]),
    )
  lastUsed(Date.now() - 3_599_000)
  await removeExpired(app.runtime)
  expect((await app.ask('GET', `/v1/sandboxes/${body.id}`)).status).toBe(200)

  lastUsed(Date.now() - 3_600_001)
  await app.exec(body.id, 'true')
  await removeExpired(app.runtime)
  expect((await app.ask('GET', `/v1/sandboxes/${body.id}`)).status).toBe(200)

  lastUsed(Date.now() - 3_600_001)
  await removeExpired(app.runtime)
  expect(await leftovers(body.sandboxId)).toEqual([])
  expect((await app.ask('GET', `/v1/sandboxes/${body.id}`)).status).toBe(404)
  expect((await app.ask('GET', `/v1/sandboxes/${kept}`)).status).toBe(200)
})

const uses: [string, (path: string) => Promise<() => void>][] = [
  [
    'a command',
    async path => {
      const abort = new AbortController()
      const body = { command: 'touch /begun; sleep 1000' }
      app.request('POST', `${path}/exec`, { body, signal: abort.signal }).catch(() => {})
      return () => abort.abort()
    },
  ],
  [
    "a command's stream",
    async path => {
      const abort = new AbortController()
      const headers = { accept: 'text/event-stream' }
      const body = { command: 'touch /begun; sleep 1000' }
      await app.request('POST', `${path}/exec`, { body, headers, signal: abort.signal })
      return () => abort.abort()
    },
  ],
  [
    "a process's output",
    async path => {
      const abort = new AbortController()
      const { pid } = (await app.ask('POST', `${path}/processes`, { command: 'touch /begun; sleep 1000' })).body
      const { body } = await app.request('GET', `${path}/processes/${pid}/output`, { signal: abort.signal })
      await body!.getReader().read()
      return () => abort.abort()
    },
  ],
  [
    'a terminal',
    async path => {
      const started = await app.ask('POST', `${path}/processes`, { command: 'touch /begun; sleep 1000', pty: true })
      const url = `${app.url.replace('http', 'ws')}${path}/processes/${started.body.pid}/terminal`
      const socket = new WebSocket(url, { headers: { authorization: `Bearer ${app.key}` } } as never)
      await new Promise(resolve => socket.addEventListener('open', resolve))
      return () => socket.close()
    },
  ],
  [
    'a download whose client takes its time',
    async path => {
      await app.shell(path.split('/').at(-1)!, 'truncate -s 256M /large; touch /begun')
      const { hostname, port } = new URL(app.url)
      const socket = connect(Number(port), hostname)
      const head = [
        `GET ${path}/files?path=/large&format=stream HTTP/1.1`,
        'host: a.test',
        `authorization: Bearer ${app.key}`,
      ]
      socket.write(`${head.join('\r\n')}\r\n\r\n`)
      await new Promise(resolve => socket.once('data', resolve))
      socket.pause()
      return () => socket.destroy()
    },
  ],
]
for (const [name, begin] of uses) {
  test(`its time to live stands still during ${name}, and begins again after it`, async () => {
    const id = await app.sandbox({ timeoutMs: 3_600_000 })
    const path = `/v1/sandboxes/${id}`
    const end = await begin(path)
    await until(async () => (await app.ask('GET', `${path}/files/exists?path=/begun`)).body === true)
    const isThereWhenOver = async () => {
      app.beside(db => db.run(`update sandboxes set last_used_at = '2020-01-01T00:00:00.000Z' where id = '${id}'`))
      await removeExpired(app.runtime)
      return (await app.ask('GET', path)).status === 200
    }
    expect(await isThereWhenOver()).toBe(true)
    expect(await isThereWhenOver()).toBe(true)
    end()
    await until(async () => !(await isThereWhenOver()))
  })
}

test('its time to live begins again when a reply ends', async () => {
  const id = await app.sandbox({ timeoutMs: 3_600_000 })
  await chat(app, 'hello', { sandboxId: id })
  app.beside(db => db.run(`update sandboxes set last_used_at = '2020-01-01T00:00:00.000Z' where id = '${id}'`))
  await removeExpired(app.runtime)
  expect((await app.ask('GET', `/v1/sandboxes/${id}`)).status).toBe(200)
  app.beside(db => db.run(`update runs set ended_at = '2020-01-01T00:00:00.000Z' where sandbox_id = '${id}'`))
  await removeExpired(app.runtime)
  expect((await app.ask('GET', `/v1/sandboxes/${id}`)).status).toBe(404)
})

const rowCount = async () => (await app.ask('GET', '/v1/sandboxes?limit=999')).body.sandboxes.length

describe('stop', () => {
  const isRunning = async (id: string) => (await app.ask('GET', `/v1/sandboxes/${id}`)).body.isRunning

  test('ends processes, keeps files, and the next use starts it again', async () => {
    const id = await app.sandbox()
    const word = `${Math.floor(Math.random() * 1e9)}`
    await app.exec(id, `echo kept > file; sleep ${word} &`)
    expect(await isRunning(id)).toBe(true)
    const stopped = await app.ask('POST', `/v1/sandboxes/${id}/stop`)
    expect([stopped.status, stopped.body.id, stopped.body.isRunning]).toEqual([200, id, false])
    expect(processesNamed(word)).toEqual([])
    expect(await isRunning(id)).toBe(false)
    const { sandboxes } = (await app.ask('GET', `/v1/sandboxes?q=${id.slice(-8)}`)).body
    expect(sandboxes.map((each: { isRunning: boolean }) => each.isRunning)).toEqual([false])
    expect((await app.exec(id, 'cat file')).stdout).toBe('kept\n')
    expect(await isRunning(id)).toBe(true)
  })

  test('cancels a reply under way, and is nothing to one that has stopped', async () => {
    const talk = await startChat(app, '/slow 100000')
    const { sandboxId: id } = talk
    expect((await app.ask('POST', `/v1/sandboxes/${id}/stop`)).status).toBe(200)
    await talk.response.text()
    expect((await app.ask('POST', `/v1/sandboxes/${id}/stop`)).body.isRunning).toBe(false)
    expect((await threadOf(app, talk)).status).toBe('cancelled')
  })
})
