import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { readConfig } from '../../src/start/config.ts'
import { readTlsPair } from '../../src/start/tls-pair.ts'
import { command, patiently, Server, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'
import { Authority } from './certificates.ts'

patiently()
const directory = temporaryDirectory()
const authority = new Authority(directory)
const [cert, key] = [join(directory, 'cert'), join(directory, 'key')]
const ca = readFileSync(authority.certFile, 'utf8')
const server = new Server({ flags: ['--tls-cert', cert, '--tls-key', key, '--spares', '0'] })

/** Puts a pair in place. */
function use(pair: { cert: string; key: string }): void {
  copyFileSync(pair.cert, cert)
  copyFileSync(pair.key, key)
  chmodSync(key, 0o600)
}

beforeAll(async () => {
  use(authority.issue('first'))
  await server.start()
})
afterAll(async () => {
  await server.stop()
  rmSync(join(server.dataDirectory, '..'), { recursive: true })
  rmSync(directory, { recursive: true })
})

const ask = (method: string, path: string, init: RequestInit & { json?: object } = {}) => {
  const { json, ...rest } = init
  const headers = {
    authorization: `Bearer ${server.key}`,
    ...(json && { 'content-type': 'application/json' }),
    ...rest.headers,
  }
  return fetch(server.url + path, {
    method,
    ...rest,
    headers,
    ...(json && { body: JSON.stringify(json) }),
    tls: { ca },
  })
}
const message = (text: string) => ({ messages: [{ role: 'user', parts: [{ type: 'text', text }] }] })
const port = () => Number(new URL(server.url).port)

/** A connection of its own, and the name of the certificate that it was given. */
const open = () =>
  new Promise<{ socket: TLSSocket; name: string }>((resolve, reject) => {
    const socket = connect({ port: port(), host: 'localhost', ca }, () =>
      resolve({ socket, name: String(socket.getPeerCertificate().subject.CN) }),
    )
    socket.once('error', reject)
  })
/** The status of a request on a connection that stays open. */
const askOn = (socket: TLSSocket) =>
  new Promise<string>((resolve, reject) => {
    const closed = () => reject(new Error('the connection was closed'))
    socket.once('close', closed)
    socket.once('data', bytes => {
      socket.off('close', closed)
      resolve(bytes.toString().split('\r\n')[0] ?? '')
    })
    socket.write('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n')
  })
const nameNow = async () => {
  const { socket, name } = await open()
  socket.destroy()
  return name
}

describe('over TLS', () => {
  test('files, streams and terminals work', async () => {
    const { id } = (await (await ask('POST', '/v1/sandboxes', { json: { agent: 'echo' } })).json()) as { id: string }
    const bytes = crypto.getRandomValues(new Uint8Array(60_000))
    expect((await ask('POST', `/v1/sandboxes/${id}/files?path=/home/user/a&format=stream`, { body: bytes })).ok).toBe(
      true,
    )
    const back = await ask('GET', `/v1/sandboxes/${id}/files?path=/home/user/a&format=stream`)
    expect(Bun.hash(await back.arrayBuffer())).toBe(Bun.hash(bytes))
    const stream = await ask('POST', '/v1/chat/echo', { json: { sandboxId: id, ...message('hello there') } })
    expect(await stream.text()).toContain('[DONE]')
    const started = await ask('POST', `/v1/sandboxes/${id}/processes`, {
      json: { command: 'cat', pty: { columns: 80, rows: 24 } },
    })
    const { pid } = (await started.json()) as { pid: number }
    const url = `${server.url.replace('https', 'wss')}/v1/sandboxes/${id}/processes/${pid}/terminal`
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${server.key}` }, tls: { ca } } as never)
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
    expect((await ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
  })

  test('the cookie of a signed-in browser is for https alone', async () => {
    const response = await fetch(`${server.url}/v1/session`, {
      ...{ method: 'POST', tls: { ca }, body: JSON.stringify({ key: server.key }) },
      headers: { 'content-type': 'application/json', origin: server.url },
    })
    expect(response.headers.get('set-cookie')).toMatch(/^__Host-threadbox-\d+=tbs_.*; Secure$/)
    expect(response.headers.get('strict-transport-security')).toBeNull()
  })

  test('commands trust an authority of their own by NODE_EXTRA_CA_CERTS, and say what is missing without', async () => {
    const env = { THREADBOX_URL: server.url, THREADBOX_API_KEY: server.key }
    const trusted = { ...env, NODE_EXTRA_CA_CERTS: authority.certFile }
    const said = await command(['chat', '--quiet', 'echo', 'hello'], { env: trusted })
    expect([said.code, said.stdout]).toEqual([0, expect.stringContaining('hello')])
    const ids = (await command(['sandboxes', 'list', '--quiet'], { env: trusted })).stdout.trim().split('\n')
    const shell = await command(['shell', ids[0] ?? '', '--', 'echo', 'inside'], { env: trusted })
    expect([shell.code, shell.stdout]).toEqual([0, 'inside\n'])
    expect((await command(['sandboxes', 'remove', ...ids], { env: trusted })).code).toBe(0)
    const refused = await command(['sandboxes', 'list'], { env })
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('NODE_EXTRA_CA_CERTS')])
  })
})

describe('a new certificate', () => {
  test('is taken without a connection lost or refused, and a broken one is not', async () => {
    const idle = await open()
    expect([idle.name, await askOn(idle.socket)]).toEqual(['first', 'HTTP/1.1 200 OK'])
    const events = await ask('GET', '/v1/events')
    const reader = events.body!.getReader()
    await reader.read()
    let isOver = false
    const failures: string[] = []
    const names = new Set<string>()
    const knocking = Array.from({ length: 2 }, async () => {
      while (!isOver) {
        await nameNow().then(
          name => names.add(name),
          error => failures.push(String(error)),
        )
        await Bun.sleep(20)
      }
    })

    // A connection without a key is closed after ten seconds of silence.
    const using = (async () => {
      while (!isOver) {
        expect(await askOn(idle.socket)).toBe('HTTP/1.1 200 OK')
        await Bun.sleep(200)
      }
    })()
    const second = authority.issue('second')
    copyFileSync(second.cert, cert)
    await until(() => server.stderr.includes(`${key} is not the key of the certificate`))
    expect(await nameNow()).toBe('first')
    use(second)
    await until(async () => (await nameNow()) === 'second')
    await until(() => server.stderr.includes('new connections get the new certificate'))
    use(authority.issue('third'))
    await until(async () => (await nameNow()) === 'third')
    await until(() => server.stderr.split('new connections get the new certificate').length === 3)
    isOver = true
    await Promise.all([...knocking, using])

    expect([failures, [...names].sort()]).toEqual([[], ['first', 'second', 'third']])
    expect(await nameNow()).toBe('third')
    idle.socket.destroy()
    const { id } = (await (await ask('POST', '/v1/sandboxes', { json: { agent: 'echo' } })).json()) as { id: string }
    for (let seen = ''; !seen.includes(id); ) seen += new TextDecoder().decode((await reader.read()).value)
    await reader.cancel()
    await ask('DELETE', `/v1/sandboxes/${id}`)
    writeFileSync(cert, 'nothing')
    await until(() => server.stderr.includes('holds no certificate in PEM'))
    expect(await nameNow()).toBe('third')
    use(authority.issue('third'))
  })
})

describe('a pair that cannot be used keeps the server from starting', () => {
  const serve = (...flags: string[]) =>
    command(['serve', '--port', '0', '--data-dir', join(directory, 'data'), ...flags])

  test('a key of another certificate', async () => {
    const [one, other] = [authority.issue('one'), authority.issue('other')]
    const { code, stderr } = await serve('--tls-cert', one.cert, '--tls-key', other.key)
    expect([code, stderr]).toEqual([1, expect.stringContaining('is not the key of the certificate')])
  })

  test('a file that is not there, and one that is no certificate', async () => {
    const one = authority.issue('one')
    const missing = await serve('--tls-cert', join(directory, 'missing'), '--tls-key', one.key)
    expect(missing.stderr).toContain('--tls-cert: ')
    const swapped = await serve('--tls-cert', one.key, '--tls-key', one.cert)
    expect(swapped.stderr).toContain('holds no certificate in PEM')
    expect(swapped.stderr).not.toContain('PRIVATE')
    expect(swapped.stderr).toEndWith('holds no certificate in PEM\n')
  })

  test('a chain that is cut, or has what is no certificate', async () => {
    const { cert, key } = authority.issue('chained')
    const own = readFileSync(cert, 'utf8')
    const pair = { certFile: join(authority.directory, 'chain.crt'), keyFile: key }
    const whole = readFileSync(authority.certFile, 'utf8')
    const garbage = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
    for (const rest of [whole.slice(0, whole.length / 2), garbage]) {
      writeFileSync(pair.certFile, own + rest)
      expect(() => readTlsPair(pair)).toThrow(/^--tls-cert: .*chain\.crt holds no certificate .* at its place 2/)
    }
    writeFileSync(pair.certFile, own + whole)
    expect(readTlsPair(pair).cert).toBe(own + whole)
  })

  test('one file without the other', async () => {
    await expect(readConfig(['--tls-cert', cert], {})).rejects.toThrow('--tls-cert, --tls-key: one wants the other')
  })
})

test('doctor and serve warn of a key that others may read', async () => {
  const pair = authority.issue('open')
  chmodSync(pair.key, 0o644)
  const { stdout } = await command(['doctor', '--tls-cert', pair.cert, '--tls-key', pair.key])
  expect(stdout).toContain('others on this machine may read or change')
})
