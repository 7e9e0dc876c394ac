import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isOnline, mirrorRules, mirrors, registries } from '../support/registries.ts'

const KEY = 'a-key-of-the-network-tests'
const binary = join(import.meta.dir, '../../dist/threadbox')
const { npm, pip, apt } = registries
const home = mkdtempSync(join(tmpdir(), 'threadbox-network-'))
const closing: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closing.splice(0)) await close()
  rmSync(home, { recursive: true, force: true })
})

interface Server {
  api(path: string, method?: string, body?: unknown, key?: string): Promise<{ status: number; json: any }>
  run(sandbox: string, command: string): Promise<{ stdout: string; stderr: string; exitCode: number }>
  create(body?: object): Promise<string>
  log(): string
}

async function serve(name: string, ...flags: string[]): Promise<Server> {
  const child = Bun.spawn([binary, 'serve', '--port', '0', '--data-dir', join(home, name), ...flags], {
    env: { ...process.env, THREADBOX_API_KEY: KEY },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  closing.push(async () => {
    child.kill()
    await child.exited
  })
  let log = ''
  void (async () => {
    for await (const chunk of child.stderr) log += Buffer.from(chunk).toString()
  })()
  let said = ''
  for await (const chunk of child.stdout) {
    said += Buffer.from(chunk).toString()
    if (said.includes('\n')) break
  }
  const origin = /http:\/\/\S+/.exec(said)?.[0]
  const api: Server['api'] = async (path, method = 'GET', body, key = KEY) => {
    const response = await fetch(`${origin}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, json: text ? JSON.parse(text) : undefined }
  }
  return {
    api,
    run: async (sandbox, command) =>
      (await api(`/sandboxes/${sandbox}/exec`, 'POST', { command, timeoutMs: 90_000 })).json,
    async create(body = {}) {
      const { status, json } = await api('/sandboxes', 'POST', { agent: 'echo', ...body })
      if (status !== 201) throw new Error(JSON.stringify(json))
      closing.unshift(() => api(`/sandboxes/${json.id}`, 'DELETE'))
      return json.id
    },
    log: () => log,
  }
}

/** A server on the host that counts what reaches it. */
function host(address: string, onConnection: (socket: Socket) => void): Promise<{ port: number; count(): number }> {
  let count = 0
  const server = createServer(socket => {
    count++
    socket.on('error', () => {})
    onConnection(socket)
  })
  closing.push(() => server.close())
  return new Promise(resolve =>
    server.listen(0, address, () => {
      const bound = server.address()
      resolve({ port: bound && typeof bound !== 'string' ? bound.port : 0, count: () => count })
    }),
  )
}

let server: Server
beforeAll(async () => {
  mkdirSync(join(home, 'agents'))
  writeFileSync(
    join(home, 'agents/narrow.json'),
    JSON.stringify({
      slug: 'narrow',
      name: 'Narrow',
      engine: 'echo',
      options: { networkAllowOut: ['*.example.com', '10.0.0.0/8'], networkDenyOut: ['no.example.com'] },
    }),
  )
  const flags = ['--agents', join(home, 'agents'), '--network-private']
  server = await serve('main', ...flags, ['127.0.0.2/32,127.0.0.3:1-65535', ...mirrors].join(','))
}, 60_000)

describe('a sandbox without rules', () => {
  test('reaches nothing of the host, of its network, and no metadata, by any form: regression', async () => {
    const { port, count } = await host('127.0.0.1', socket => socket.end('HTTP/1.1 200 OK\r\n\r\nreached'))
    const sandbox = await server.create()
    const hosts = [
      '127.0.0.2',
      '2130706433',
      '0177.0.0.1',
      '0x7f.1',
      '[::ffff:127.0.0.1]',
      '[::1]',
      'localhost.',
      '0.0.0.0',
    ]
    hosts.push('10.0.0.1', '192.168.0.1', '169.254.169.254', '[fd00:ec2::254]', '100.64.0.1', '[64:ff9b::7f00:1]')
    const ask = (proxied: string, url: string) =>
      `curl -sS -m 10 --noproxy '' ${proxied} -o /dev/null -w '%{http_code} %{http_connect}\\n' '${url}' 2>/dev/null`
    const commands = hosts.flatMap(each => [ask('', `http://${each}:${port}/`), ask('-p', `http://${each}:${port}/`)])
    const { stdout } = await server.run(sandbox, commands.join('; '))
    const answers = stdout.trim().split('\n')
    expect(answers).toHaveLength(2 * hosts.length)
    expect(answers.filter(answer => !/^(40[03]|502) 000$|^000 (40[03]|502)$/.test(answer))).toEqual([])
    expect(count()).toBe(0)
  }, 60_000)

  test('has no other way out: regression', async () => {
    const sandbox = await server.create()
    const addresses = ['10.0.0.1', '169.254.169.254', '172.16.0.1']
    const { stdout } = await server.run(
      sandbox,
      `for a in ${addresses.join(' ')}; do curl -sS -m 20 --noproxy "*" http://$a/ 2>&1; done; ls /sys/class/net 2>/dev/null`,
    )
    expect(stdout).not.toMatch(/HTTP|html/i)
    // Which of them depends on when a program sees the reset.
    expect(stdout.match(/^curl: \((7|52|55|56)\)/gm)).toHaveLength(3)
    const { decisions } = (await server.api(`/sandboxes/${sandbox}/network/decisions`)).json
    const refused = decisions.filter(({ isAllowed }: any) => !isAllowed).map(({ host, port }: any) => `${host} ${port}`)
    expect(refused.sort()).toEqual(addresses.map(address => `${address} 80`).sort())
  }, 60_000)
})

describe('rules', () => {
  test('are shown, checked, narrowed and taken away', async () => {
    const sandbox = await server.create({ networkAllowOut: ['a.com:443', '10.0.0.0/8'], networkDenyOut: ['b.com'] })
    const shown = async () => (await server.api(`/sandboxes/${sandbox}`)).json.network
    const decisions = { allowed: 0, refused: 0 }
    expect(await shown()).toEqual({
      mode: 'public',
      allowOut: ['a.com:443', '10.0.0.0/8'],
      denyOut: ['b.com'],
      decisions,
    })
    const changed = await server.api(`/sandboxes/${sandbox}`, 'PATCH', { networkAllowOut: null })
    expect(changed.json.network).toEqual({ mode: 'public', allowOut: null, denyOut: ['b.com'], decisions })
    expect(await shown()).toEqual(changed.json.network)
  }, 60_000)

  test('say what they have allowed and refused, the latest first', async () => {
    const sandbox = await server.create({ networkAllowOut: ['a.invalid:443'] })
    await server.run(sandbox, 'for i in 1 2; do curl -s https://b.example.com; done; curl -s https://c.example.com')
    const { decisions } = (await server.api(`/sandboxes/${sandbox}/network/decisions`)).json
    const known = decisions.map(({ host, port, isAllowed, count }: any) => ({ host, port, isAllowed, count }))
    expect(known).toContainEqual({ host: 'b.example.com', port: 443, isAllowed: false, count: 2 })
    expect(decisions[0].host).toBe('c.example.com')
    expect(decisions.find(({ host }: any) => host === 'b.example.com').reason).toBeString()
  }, 60_000)

  test('say of a refusal what stands in the way of allowing it for the sandbox alone', async () => {
    const sandbox = await server.create({
      agent: 'narrow',
      networkAllowOut: ['a.example.com'],
      networkDenyOut: ['*.test.example.com', 'exact.example.com:443'],
    })
    const hosts = [
      'b.example.com',
      'exact.example.com',
      'x.test.example.com',
      'no.example.com',
      'example.org',
      '10.1.2.3',
    ]
    await server.run(sandbox, hosts.map(host => `curl -s https://${host}`).join('; '))
    const { decisions } = (await server.api(`/sandboxes/${sandbox}/network/decisions`)).json
    const obstacles = hosts.map(host => decisions.find((each: any) => each.host === host).obstacle)
    expect(obstacles).toEqual([
      undefined,
      undefined,
      '*.test.example.com is denied',
      'the rules of its agent refuse it: no.example.com is denied',
      'the rules of its agent refuse it: it is not on the allow-list',
      'the rules of its agent refuse it: its address is not public, and the operator does not permit it',
    ])
    const names = ['b.example.com', 'x.test.example.com', 'example.org']
    await server.run(sandbox, names.map(name => `getent ahosts ${name}`).join('; '))
    const after = (await server.api(`/sandboxes/${sandbox}/network/decisions`)).json.decisions
    const lookups = names.map(name => after.find((each: any) => each.host === name && each.isName))
    expect(lookups.map(each => [each.isAllowed, each.obstacle])).toEqual([
      [false, undefined],
      [false, '*.test.example.com is denied'],
      [false, 'the rules of its agent refuse it: it is not on the allow-list'],
    ])
  }, 60_000)

  test('that are not valid are refused by their field', async () => {
    const sandbox = await server.create()
    for (const field of ['networkAllowOut', 'networkDenyOut']) {
      const requests: [string, string, object][] = [
        ['/sandboxes', 'POST', { agent: 'echo', [field]: ['a.com', 'a.com/x'] }],
        [`/sandboxes/${sandbox}`, 'PATCH', { [field]: ['a.com', 'a.com/x'] }],
      ]
      for (const request of requests) {
        const { status, json } = await server.api(...request)
        expect([status, json.error.code, json.error.message]).toEqual([
          400,
          'invalid_request',
          `${field}.1: "a.com/x" is not a domain, address or CIDR`,
        ])
      }
    }
  }, 60_000)

  test('cannot be set by a browser token: regression', async () => {
    const { json } = await server.api('/tokens', 'POST', { agents: ['echo'] })
    const sandbox = await server.create()
    const set = { networkAllowOut: ['127.0.0.2'] }
    const answers = [
      await server.api(`/sandboxes/${sandbox}`, 'GET', undefined, json.token),
      await server.api(`/sandboxes/${sandbox}`, 'PATCH', set, json.token),
      await server.api('/sandboxes', 'POST', { agent: 'echo', ...set }, json.token),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 403, 403])
  }, 60_000)

  test('of a patch cut an open tunnel: regression', async () => {
    const { port } = await host('127.0.0.2', socket => void socket.pipe(socket))
    const sandbox = await server.create({ networkAllowOut: ['127.0.0.2'] })
    const script = [
      'import socket',
      's = socket.create_connection(("127.0.0.1", 3128))',
      `s.sendall(b"CONNECT 127.0.0.2:${port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\nhello")`,
      'text = b""',
      'while not text.endswith(b"hello"): text += s.recv(100)',
      'open("/tmp/open", "w").close()',
      'print("cut" if s.recv(100) == b"" else "open")',
    ].join('\n')
    const tunnel = server.run(sandbox, `python3 -c '${script}'`)
    await server.run(sandbox, 'until [ -e /tmp/open ]; do sleep 0.02; done')
    await server.api(`/sandboxes/${sandbox}`, 'PATCH', { networkDenyOut: ['127.0.0.0/8'] })
    expect((await tunnel).stdout).toBe('cut\n')
  }, 60_000)

  test('hold for set-up commands too: regression', async () => {
    const { port, count } = await host('127.0.0.3', socket =>
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
    )
    const setup = [`curl -sS http://127.0.0.3:${port}/ > /tmp/answer`]
    await server.create({ setup, networkAllowOut: ['127.0.0.3'] })
    const sandbox = await server.create({ setup })
    expect((await server.run(sandbox, 'cat /tmp/answer')).stdout).toContain('its address is not public')
    expect(count()).toBe(1)
  }, 60_000)
})

describe('git clone', () => {
  test('reaches a host that a CIDR names and the operator permits, and says why it does not', async () => {
    const repository = join(home, 'r.git')
    const made = Bun.spawnSync(
      [
        'sh',
        '-c',
        `git init -q -b main w && cd w && git -c user.name=a -c user.email=a@a commit -q --allow-empty -m one && git clone -q --bare . ${repository} && git -C ${repository} update-server-info`,
      ],
      { cwd: home },
    )
    expect(made.exitCode).toBe(0)
    const files = Bun.serve({
      hostname: '127.0.0.2',
      port: 0,
      async fetch(request) {
        const file = Bun.file(join(home, new URL(request.url).pathname))
        return (await file.exists()) ? new Response(file) : new Response('', { status: 404 })
      },
    })
    closing.push(() => files.stop(true))
    const clone = (sandbox: string, scheme = 'http') =>
      server.api(`/sandboxes/${sandbox}/git/clone`, 'POST', { url: `${scheme}://127.0.0.2:${files.port}/r.git` })
    const allowed = await clone(await server.create({ networkAllowOut: ['127.0.0.2/32'] }))
    expect([allowed.status, allowed.json]).toEqual([200, { path: '/home/user/repo', branch: 'main' }])
    const closed = await server.create()
    expect((await clone(closed)).json.error.message).toContain('403')
    expect((await clone(closed, 'https')).json.error.message).toEndWith(
      `threadbox: 127.0.0.2 port ${files.port}: its address is not public`,
    )
  }, 60_000)
})

describe.if(isOnline)('an allow-list of registries', () => {
  const aptConfig = [
    'mkdir -p /tmp/apt/state/lists/partial /tmp/apt/cache/archives/partial /tmp/apt/etc/apt.conf.d; cd /tmp/apt; touch state/status',
    `echo "deb [trusted=yes] ${apt} stable main" > etc/sources.list`,
    'echo \'Dir::State "/tmp/apt/state"; Dir::State::status "/tmp/apt/state/status"; Dir::Cache "/tmp/apt/cache"; Dir::Etc "/tmp/apt/etc"; APT::Sandbox::User "root"; Acquire::Languages "none";\' > conf',
  ].join('; ')
  const rows: [string, string[], string][] = [
    ['npm', [`${npm}:443`], 'mkdir -p /tmp/n && cd /tmp/n && npm init -y >/dev/null && npm install is-odd'],
    [
      'pip',
      [pip.index, `*.${pip.storage.replace(/^[^.]*\./, '')}`],
      'cd /tmp && python3 -m pip download --no-deps six',
    ],
    ['curl', [`${pip.index}:443`], `curl -sSf -o /dev/null https://${pip.index}/simple/six/`],
    ['git', [`${pip.index}:443`], `git ls-remote https://${pip.index}/a/b 2>&1 | grep -q "not found"`],
    [
      'apt',
      [`${URL.parse(apt)?.host}:80`],
      `${aptConfig}; APT_CONFIG=/tmp/apt/conf apt-get update -o APT::Update::Error-Mode=any`,
    ],
  ]
  test.each(rows)(
    'lets %s work, and nothing beside it',
    async (_, networkAllowOut, command) => {
      const sandbox = await server.create({ networkAllowOut: [...networkAllowOut, ...mirrors] })
      const { exitCode, stdout, stderr } = await server.run(sandbox, command)
      if (exitCode !== 0) console.error(stdout, stderr, server.log().slice(-1000))
      expect(exitCode).toBe(0)
      // A mirror may stand in for all of them at one address, which is allowed then.
      const other = mirrors.length > 0 ? '8.8.8.8' : networkAllowOut[0]?.startsWith(pip.index) ? npm : pip.index
      const refused = await server.run(
        sandbox,
        `curl -sS -o /dev/null -w '%{http_connect}' https://${other}/; curl -sS http://${other}/`,
      )
      expect(refused.stdout).toStartWith('403')
      expect(refused.stdout).toContain(`threadbox: ${other}:80: it is not on the allow-list`)
    },
    120_000,
  )

  const programs: [string, string, string][] = [
    ['npm install -g', 'npm install -g --silent cowsay && cowsay moo', 'moo'],
    [
      'pip',
      'python3 -m pip install -q --target /tmp/v six && PYTHONPATH=/tmp/v python3 -c "import six; print(six.__file__)"',
      '/tmp/v/six',
    ],
    ['apt-get update and download', 'cd /tmp && apt-get -qq update && apt-get -qq download jq && ls', 'jq_'],
  ]
  test.each(programs)(
    'a sandbox without rules has %s as it comes',
    async (_, command, says) => {
      const { exitCode, stdout, stderr } = await server.run(await server.create(mirrorRules), command)
      expect([exitCode, stdout]).toEqual([0, expect.stringContaining(says)])
      expect(stderr).not.toContain('rror')
    },
    120_000,
  )
})

test('a server with no network lets nothing out, whatever a rule says: regression', async () => {
  const { port, count } = await host('127.0.0.2', socket => socket.end())
  const closed = await serve('none', '--network', 'none', '--network-private', '127.0.0.2')
  const sandbox = await closed.create({ networkAllowOut: ['127.0.0.2'] })
  const { stdout } = await closed.run(sandbox, `curl -sS http://127.0.0.2:${port}/; curl -sS http://1.1.1.1/`)
  expect(stdout.match(/this server lets sandboxes reach no network/g)).toHaveLength(2)
  expect(count()).toBe(0)
  expect((await closed.api(`/sandboxes/${sandbox}`)).json.network.mode).toBe('none')
}, 60_000)

test('the log has hosts and ports, and never a path or a query: regression', async () => {
  const sandbox = await server.create()
  await server.run(sandbox, 'curl -sS "http://10.9.8.7:81/a-secret-path?a-secret=query"')
  expect(server.log()).toContain('refused 10.9.8.7 port 81: its address is not public')
  expect(server.log()).not.toContain('secret')
}, 60_000)
