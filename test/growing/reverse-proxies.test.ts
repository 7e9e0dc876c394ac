import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readPage } from '../docs/page.ts'
import { command, executable, patiently, Server, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()
const directory = temporaryDirectory()
const flags = ['--trusted-proxies', '127.0.0.1', '--spares', '0']
const [first, second] = [new Server({ flags }), new Server({ flags })]
let blueKey = ''

beforeAll(async () => {
  await Promise.all([first.start(), second.start()])
  blueKey = await newKey(second, 'blue')
})
afterAll(async () => {
  await Promise.all([first.close(), second.close()])
  rmSync(directory, { recursive: true })
})

async function newKey({ dataDirectory }: Server, team: string): Promise<string> {
  const { stdout } = await command(['keys', 'create', '--quiet', '--team', team, '--data-dir', dataDirectory], {
    command: [executable],
  })
  return stdout.trim()
}

/** The page's file with the addresses of this test, without TLS. */
function localFile(name: string, port: number): string {
  const block = readPage('docs/growing.md').blocks.find(({ label }) => label === name)
  return (block?.code ?? '')
    .replaceAll('10.0.0.1:7070', new URL(first.url).host)
    .replaceAll('10.0.0.2:7070', new URL(second.url).host)
    .replaceAll('tbx_(aB3dE5|Zz09yX)', `tbx_(${blueKey.slice(4, 10)}|Zz09yX)`)
    .replaceAll(/^(\S*threads\.example\.com) \{/gm, `http://$1:${port} {`)
    .replaceAll('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replaceAll(/^\tssl_.*\n/gm, '')
}

function freePort(): number {
  const probe = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  probe.stop()
  return probe.port
}

const proxies = {
  caddy: {
    file: 'Caddyfile',
    wrap: (text: string) => `{\n\tadmin off\n\tauto_https off\n}\n${text}`,
    argv: ['caddy', 'run', '--config', 'Caddyfile'],
  },
  nginx: {
    file: 'nginx.conf',
    wrap: (text: string) =>
      `user root; daemon off; worker_processes 1; pid nginx.pid; error_log stderr; events {}\nhttp {\naccess_log off; ${temporary}\n${text}}\n`,
    argv: ['nginx', '-p', '.', '-c', 'nginx.conf', '-e', 'stderr'],
  },
}
const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path tmp;`).join(' ')

describe.each(['caddy', 'nginx'] as const)('behind %s', name => {
  const port = freePort()
  const { file, wrap, argv } = proxies[name]
  const cwd = join(directory, name)
  let proxy: Bun.Subprocess

  beforeAll(async () => {
    mkdirSync(cwd)
    writeFileSync(join(cwd, file), wrap(localFile(file, port)))
    proxy = Bun.spawn(argv, {
      cwd,
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: cwd },
      stdio: ['ignore', 'ignore', Bun.file(join(cwd, 'log'))],
    })
    await until(async () => {
      if (proxy.exitCode !== null) throw new Error(await Bun.file(join(cwd, 'log')).text())
      return await ask('threads.example.com', first.key, 'GET', '/health').then(
        ({ ok }) => ok,
        () => false,
      )
    })
  })
  afterAll(async () => {
    proxy.kill()
    await proxy.exited
  })

  const ask = (
    host: string,
    key: string,
    method: string,
    path: string,
    more: Record<string, string> = {},
    body?: object,
  ) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { host: `${host}:${port}`, authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more },
      ...(body && { body: JSON.stringify(body) }),
    })
  const teamOf = async (...args: Parameters<typeof ask>) => {
    const response = await ask(...args)
    return response.ok ? ((await response.json()) as { team: { slug: string } }).team.slug : response.status
  }

  test('the beginning of a key, a header or the host leads to the team’s server', async () => {
    expect(await teamOf('threads.example.com', first.key, 'GET', '/v1/me')).toBe('default')
    expect(await teamOf('threads.example.com', blueKey, 'GET', '/v1/me')).toBe('blue')
    expect(await teamOf('blue.threads.example.com', blueKey, 'GET', '/v1/me')).toBe('blue')
    const other = await newKey(second, 'blue')
    expect(await teamOf('threads.example.com', other, 'GET', '/v1/me')).toBe(401)
    expect(await teamOf('threads.example.com', other, 'GET', '/v1/me', { 'x-team': 'blue' })).toBe('blue')
    // A key of one server is nothing at the other.
    expect(await teamOf('blue.threads.example.com', first.key, 'GET', '/v1/me')).toBe(401)
  })

  test('a reply of each team’s server streams chunk by chunk, and can be cancelled meanwhile', async () => {
    for (const [key, server] of [
      [first.key, first],
      [blueKey, second],
    ] as const) {
      const messages = [{ role: 'user', parts: [{ type: 'text', text: '/slow 100000' }] }]
      const response = await ask('threads.example.com', key, 'POST', '/v1/chat/echo', {}, { messages })
      const sandboxId = response.headers.get('x-sandbox-id')
      let seen = ''
      let isCancelled = false
      // It has no end of its own while the test waits: what is seen of it came through while it was under way.
      for await (const bytes of response.body!) {
        seen += new TextDecoder().decode(bytes)
        if (isCancelled || !seen.includes('"delta":"2 "')) continue
        isCancelled = true
        const path = `/v1/chat/echo/${sandboxId}/stream`
        expect((await ask('threads.example.com', key, 'DELETE', path)).status).toBeLessThan(300)
      }
      expect([isCancelled, seen.includes('"type":"abort"')]).toEqual([true, true])
      const path = `/v1/sandboxes/${sandboxId}`
      expect((await server.request('DELETE', path, { key })).status).toBe(204)
    }
  })
})
