import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readPage } from '../docs/page.ts'
import { patiently, Server, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()
const directory = temporaryDirectory()
const name = 'threads.example.com'
const probe = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
const { port } = probe
probe.stop()
const url = `https://localhost:${port}`
const server = new Server({ flags: ['--public-url', url, '--trusted-proxies', '127.0.0.1', '--spares', '0'] })
const authority = join(directory, 'caddy/pki/authorities/local/root.crt')
let caddy: Bun.Subprocess

beforeAll(async () => {
  await server.start()
  const block = readPage('docs/tls.md').blocks.find(({ label }) => label === 'Caddyfile')
  const local = (block?.code ?? '')
    .replace(`${name} {`, `localhost:${port} {\n\ttls internal`)
    .replace('127.0.0.1:7070', new URL(server.url).host)
  writeFileSync(
    join(directory, 'Caddyfile'),
    `{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n${local}`,
  )
  caddy = Bun.spawn(['caddy', 'run', '--config', 'Caddyfile'], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  await until(
    async () =>
      existsSync(authority) &&
      (await ask('GET', '/health').then(
        ({ ok }) => ok,
        () => false,
      )),
  )
})
afterAll(async () => {
  caddy.kill()
  await caddy.exited
  await server.close()
  rmSync(directory, { recursive: true })
})

const ask = (method: string, path: string, json?: object, headers: Record<string, string> = {}) =>
  fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', ...headers },
    ...(json && { body: JSON.stringify(json) }),
    tls: { ca: readFileSync(authority, 'utf8') },
  })

test('behind Caddy streams come chunk by chunk, terminals work, and cookies are for https alone', async () => {
  const { id } = (await (await ask('POST', '/v1/sandboxes', { agent: 'echo' })).json()) as { id: string }
  const command = 'echo begun; until [ -e go ]; do sleep 0.05; done; echo over'
  const events = await ask('POST', `/v1/sandboxes/${id}/exec`, { command }, { accept: 'text/event-stream' })
  const reader = events.body!.getReader()
  let seen = ''
  const readOn = async (until: string) => {
    while (!seen.includes(until)) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`it ended with ${seen}`)
      seen += new TextDecoder().decode(value)
    }
  }
  await readOn('begun')
  expect(seen).not.toContain('over')
  await ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'touch go' })
  await readOn('"exitCode":0')

  const messages = [{ role: 'user', parts: [{ type: 'text', text: 'hello over there' }] }]
  const chat = await ask('POST', '/v1/chat/echo', { sandboxId: id, messages })
  expect([chat.headers.get('content-type'), await chat.text()]).toEqual([
    expect.stringContaining('text/event-stream'),
    expect.stringContaining('data: [DONE]'),
  ])

  const started = await ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'cat', pty: { columns: 80, rows: 24 } })
  const { pid } = (await started.json()) as { pid: number }
  const socket = new WebSocket(`${url.replace('https', 'wss')}/v1/sandboxes/${id}/processes/${pid}/terminal`, {
    headers: { authorization: `Bearer ${server.key}` },
    tls: { ca: readFileSync(authority, 'utf8') },
  } as never)
  socket.binaryType = 'arraybuffer'
  let shown = ''
  socket.onmessage = ({ data }) => {
    shown += typeof data === 'string' ? data : new TextDecoder().decode(data)
  }
  await new Promise(resolve => {
    socket.onopen = resolve
  })
  socket.send(new TextEncoder().encode('typed\r'))
  await until(() => shown.includes('typed'))
  socket.close()

  const signedIn = await ask('POST', '/v1/session', { key: server.key }, { origin: url })
  expect(signedIn.headers.get('set-cookie')).toMatch(/^__Host-threadbox-\d+=.*; Secure$/)
  expect(signedIn.headers.get('strict-transport-security')).toBe('max-age=31536000')
})
