import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { revokeKey } from '../../src/db/keys.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { processesNamed } from '../support/leftovers.ts'
import { peakGrowth } from '../support/memory.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const app = useApp(['--origins', 'https://app.example'])
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})

const path = (rest = '') => `/v1/sandboxes/${id}/processes${rest}`
const start = async (command: string | string[], fields: object = {}): Promise<number> => {
  const { status, body } = await app.ask('POST', path(), { command, pty: { columns: 90, rows: 30 }, ...fields })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.pid
}

const open: WebSocket[] = []
afterEach(() => {
  for (const socket of open.splice(0)) socket.close()
})

/** A terminal as a program has it. */
function connect(
  pid: number,
  query = '',
  options: object = { headers: { authorization: `Bearer ${app.key}` } },
  processes = `${app.url}${path()}`,
) {
  const socket = new WebSocket(`${processes.replace('http', 'ws')}/${pid}/terminal${query}`, options as never)
  socket.binaryType = 'nodebuffer'
  open.push(socket)
  const closed = Promise.withResolvers<{ code: number; reason: string }>()
  const opened = Promise.withResolvers<boolean>()
  const terminal = {
    socket,
    shown: '',
    messages: [] as any[],
    closed: closed.promise,
    opened: opened.promise,
    shows: (text: string) => until(() => terminal.shown.includes(text), `${text} in ${JSON.stringify(terminal.shown)}`),
    type: (keys: string) => socket.send(Buffer.from(keys)),
    say: (message: object) => socket.send(JSON.stringify(message)),
  }
  socket.onmessage = ({ data }) => {
    if (typeof data === 'string') terminal.messages.push(JSON.parse(data))
    else terminal.shown += data.toString()
  }
  socket.onopen = () => opened.resolve(true)
  socket.onclose = ({ code, reason }) => {
    opened.resolve(false)
    closed.resolve({ code, reason })
  }
  return terminal
}

test('keys go in, what is shown comes out, and the exit ends it', async () => {
  const terminal = connect(await start(['/bin/bash', '--norc', '-i']))
  await terminal.opened
  terminal.type('tty; stty size; echo $TERM\r')
  await terminal.shows('/dev/pts/0')
  await terminal.shows('30 90')
  await terminal.shows('xterm-256color')
  terminal.say({ type: 'resize', columns: 132, rows: 43 })
  terminal.type('stty size\r')
  await terminal.shows('43 132')
  terminal.type('sleep 1000; echo code $?\r')
  await terminal.shows('sleep 1000')
  await until(async () => (await app.exec(id, 'pgrep -x sleep')).exitCode === 0)
  terminal.type('\x03')
  await until(async () => (await app.exec(id, 'pgrep -x sleep')).exitCode === 1)
  terminal.type('exit 6\r')
  expect(await terminal.closed).toEqual({ code: 1000, reason: '' })
  expect(terminal.messages).toEqual([{ type: 'exit', exitCode: 6 }])
})

test('a lost connection ends nothing, and the next one sees what was missed', async () => {
  const pid = await start('echo first; read -r line; echo "got $line"; read -r line')
  const lost = connect(pid)
  await lost.shows('first')
  lost.socket.terminate()
  await lost.closed
  expect((await app.ask('POST', path(`/${pid}/stdin`), { data: 'word\r' })).status).toBe(204)
  const next = connect(pid)
  await next.shows('first\r\nword\r\ngot word\r\n')
  const late = connect(pid, '?offset=7')
  await late.shows('word\r\ngot word\r\n')
  expect(late.shown.startsWith('word')).toBe(true)
  next.type('\r')
  expect([(await next.closed).code, (await late.closed).code]).toEqual([1000, 1000])
})

test('one that was to hang up takes the process with it', async () => {
  const marker = `sleep-${crypto.randomUUID()}`
  const pid = await start(`setsid bash -c 'exec -a ${marker} sleep 1000' & sleep 1000`)
  const terminal = connect(pid, '?hangup=true')
  await terminal.opened
  await until(() => processesNamed(marker).length === 1)
  terminal.socket.terminate()
  await until(() => processesNamed(marker).length === 0)
  await until(async () => (await app.ask('GET', path(`/${pid}`))).status === 404)
})

test('ends soon after the key that opened it: regression', async () => {
  const { key, row } = app.beside(db => createKey(db, { team: 'default', name: 'lost' }))
  const terminal = connect(await start('cat'), '', { headers: { authorization: `Bearer ${key}` } })
  await terminal.opened
  terminal.type('one\r')
  await terminal.shows('one')
  app.beside(db => revokeKey(db, row.id))
  let ended: object | undefined
  void terminal.closed.then(closed => (ended = closed))
  await until(() => {
    terminal.type('two\r')
    return ended !== undefined
  })
  expect(ended).toEqual({ code: 1008, reason: 'The key, token or link has ended.' })
})

test('bytes are not touched either way', async () => {
  const pid = await start('stty raw -echo; echo ready; head -c 70000 | sha256sum')
  const terminal = connect(pid)
  await terminal.shows('ready')
  const bytes = crypto.getRandomValues(new Uint8Array(70_000))
  for (let at = 0; at < bytes.length; at += 1000) terminal.socket.send(bytes.subarray(at, at + 1000))
  await terminal.shows(new Bun.CryptoHasher('sha256').update(bytes).digest('hex'))
})

test('a client that reads nothing does not fill the server’s memory, and misses only what is too old', async () => {
  await using server = await startServer()
  const processes = `/v1/sandboxes/${await server.sandbox()}/processes`
  const command = 'read -r line; seq 3000000; echo the end; read -r line'
  const { body } = await server.ask('POST', processes, { command, pty: { columns: 90, rows: 30 }, stdin: true })
  const { hostname, port } = new URL(server.url)
  let isUpgraded = false
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data: socket => {
        isUpgraded = true
        socket.pause()
      },
    },
  })
  socket.write(
    [
      `GET ${processes}/${body.pid}/terminal HTTP/1.1`,
      `host: ${hostname}`,
      `authorization: Bearer ${server.key}`,
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    ].join('\r\n'),
  )
  await until(() => isUpgraded)
  const grown = await peakGrowth(server.pid, async () => {
    await server.ask('POST', `${processes}/${body.pid}/stdin`, { data: 'go\n' })
    await until(async () => (await server.ask('GET', `${processes}/${body.pid}`)).body.outputEnd > 25_000_000)
  })
  expect(grown).toBeLessThan(48 * 1024 * 1024)
  const late = connect(
    body.pid,
    '',
    { headers: { authorization: `Bearer ${server.key}` } },
    `${server.url}${processes}`,
  )
  await late.shows('the end')
  expect(late.messages[0]).toEqual({ type: 'gap', offset: expect.any(Number) })
  socket.end()
  expect((await server.ask('DELETE', `${processes}/${body.pid}`)).status).toBe(204)
  expect(await late.closed).toEqual({ code: 1011, reason: 'process_not_found' })
})

test('one that floods a process that does not read is closed', async () => {
  const terminal = connect(await start('stty raw -echo; echo ready; sleep 1000'))
  await terminal.shows('ready')
  const piece = new Uint8Array(1_000_000)
  for (let index = 0; index < 20; index++) terminal.socket.send(piece)
  expect((await terminal.closed).code).toBe(1009)
})

test.each([
  ['bytes', Buffer.from('x')],
  ['sizes', '{"type":"resize","columns":80,"rows":24}'],
])('so is one that floods it with %s one by one, which take more room than they have bytes', async (_, message) => {
  const terminal = connect(await start('stty raw -echo; echo ready; sleep 1000'))
  await terminal.shows('ready')
  // More than the process takes, so that what follows waits.
  terminal.socket.send(new Uint8Array(1_000_000))
  for (let index = 0; index < 50_000; index++) terminal.socket.send(message)
  expect((await terminal.closed).code).toBe(1009)
})

test('a message that means nothing closes it', async () => {
  for (const message of ['no JSON', '{"type":"other"}', '{"type":"resize","columns":0,"rows":5}', '[]']) {
    const terminal = connect(await start('sleep 1000'))
    await terminal.opened
    terminal.socket.send(message)
    expect((await terminal.closed).code).toBe(1003)
  }
})

describe('who may open one', () => {
  const offer = (...protocols: string[]) => ({ protocols })
  let pid = 0
  beforeAll(async () => {
    pid = await start('echo mine; sleep 1000')
  })

  test('a browser, by a protocol that names its token, which does not come back', async () => {
    const { body } = await app.ask('POST', '/v1/tokens', { agents: ['echo'] })
    const terminal = connect(pid, '', offer('threadbox', `bearer.${body.token}`))
    await terminal.shows('mine')
    expect(terminal.socket.protocol).toBe('threadbox')
    const response = await upgradeOf({ 'sec-websocket-protocol': `bearer.${app.key}, threadbox` })
    expect(response).toStartWith('HTTP/1.1 101')
    expect(response).not.toContain(app.key)
  })

  const strangers: [string, () => Record<string, string>, number][] = [
    ['nobody without a key', () => ({}), 401],
    ['no wrong key', () => ({ authorization: 'Bearer tbx_no' }), 401],
    ['no wrong token', () => ({ 'sec-websocket-protocol': 'threadbox, bearer.tbt_no.no' }), 401],
    ['no token alone', () => ({ 'sec-websocket-protocol': `bearer.${app.key}` }), 401],
    ['no other team', () => ({ authorization: `Bearer ${app.foreignKey}` }), 404],
    ['no page of another origin', () => ({ authorization: `Bearer ${app.key}`, origin: 'https://evil.example' }), 403],
  ]
  test.each(strangers)('%s', async (_, headers, status) => {
    expect(await upgradeOf(headers())).toStartWith(`HTTP/1.1 ${status}`)
  })

  test('no revoked key', async () => {
    const { key, row } = app.beside(db => createKey(db, { team: 'default', name: 'short' }))
    expect(await upgradeOf({ authorization: `Bearer ${key}` })).toStartWith('HTTP/1.1 101')
    app.beside(db => db.run('update api_keys set revoked_at = ? where id = ?', [new Date().toISOString(), row.id]))
    expect(await upgradeOf({ authorization: `Bearer ${key}` })).toStartWith('HTTP/1.1 401')
  })

  test('no request that is none of a WebSocket', async () => {
    expect(codeOf(await app.ask('GET', path(`/${pid}/terminal`)))).toBe('400 invalid_request')
    const protocols = { 'sec-websocket-protocol': `bearer.${app.key}` }
    const { status } = await app.ask('GET', path(), undefined, { key: null, headers: protocols })
    expect(status).toBe(401)
  })

  /** The answer's head, as it is. */
  async function upgradeOf(headers: Record<string, string>): Promise<string> {
    const { hostname, port } = new URL(app.url)
    const answered = Promise.withResolvers<string>()
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_, bytes) => answered.resolve(bytes.toString()),
        close: () => answered.resolve(''),
      },
    })
    const lines = Object.entries({
      ...{ host: hostname, connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      ...headers,
    }).map(([name, value]) => `${name}: ${value}`)
    socket.write(`GET ${path(`/${pid}/terminal`)} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    const head = await answered.promise
    socket.end()
    return head
  }
})
