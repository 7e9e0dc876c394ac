import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { createEgress } from '../../src/egress/egress.ts'
import { createNamePool } from '../../src/egress/names/pool.ts'
import type { BoundSecret, SecretUse } from '../../src/egress/secrets/binding.ts'
import { numberField, stringField } from '../../src/egress/ssh/fields.ts'
import { readPrivateKey } from '../../src/egress/ssh/private-key.ts'
import { listen, loopback, SANDBOX } from '../egress/support.ts'
import { startSshServer } from '../support/ssh-server.ts'

setDefaultTimeout(60_000)
const directory = mkdtempSync(join(tmpdir(), 'threadbox-agent-'))
const closing: (() => void)[] = []
afterAll(() => {
  for (const close of closing) close()
  rmSync(directory, { recursive: true })
})

const { generateKeyPairSync } = ssh2.utils
const keyOf = (kind: 'ed25519' | 'rsa' | 'ecdsa') =>
  kind === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync(kind, { bits: kind === 'rsa' ? 2048 : 256 })
const keys = { ed25519: keyOf('ed25519'), rsa: keyOf('rsa'), ecdsa: keyOf('ecdsa') }
const key = keys.ed25519
const authorized = Object.values(keys).map(({ private: text }) => readPrivateKey(text).publicKey)

async function serveSsh(kind: 'ed25519' | 'rsa' | 'ecdsa' = 'ed25519'): Promise<{ port: number; hostKey: string }> {
  const host = keyOf(kind)
  const { port, close } = await startSshServer(host.private, authorized)
  closing.push(close)
  return { port, hostKey: host.public }
}

const server = await serveSsh()
const other = await serveSsh()

const secret = (name: string, fields: Partial<BoundSecret> = {}, text = key.private): BoundSecret => ({
  name,
  hosts: [`git.test:${server.port}`],
  as: { ssh: { user: 'git' } },
  value: () => text,
  ...fields,
})

let count = 0

/** A sandbox's way out: an agent at a path, and ports that lead to servers by their names. */
async function openScene(secrets: readonly BoundSecret[]) {
  const pool = createNamePool(SANDBOX)
  const uses: SecretUse[] = []
  const egress = createEgress({
    policyOf: () => loopback,
    log() {},
    createPool: () => pool,
    resolve: async () => ['127.0.0.1'],
    secretsOf: () => secrets,
    usedSecret: (_, use) => void uses.push(use),
  })
  const open: Server[] = []
  closing.push(() => {
    egress.close()
    for (const each of open) each.close()
  })
  const socket = join(directory, `${++count}.sock`)
  const said: Buffer[] = []
  const agent = createServer({ allowHalfOpen: true }, client => {
    client.on('data', bytes => void said.push(Buffer.from(bytes)))
    egress.serveSshAgent(SANDBOX, client)
  })
  open.push(agent)
  await new Promise<void>(resolve => agent.listen(socket, resolve))
  const gate = async (name: string, port: number) => {
    const address = pool.addressFor(name, 4)
    const listening = createServer({ allowHalfOpen: true }, client =>
      egress.serveDirect(SANDBOX, client, { address, port }),
    )
    open.push(listening)
    return await listen(listening, '127.0.0.1')
  }
  const ssh = async (name: string, { port = server.port, user = 'git', words = [] as string[] } = {}) => {
    const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'BatchMode=yes', 'LogLevel=ERROR']
    const child = Bun.spawn(
      [
        ...['ssh', '-F', '/dev/null', ...options.flatMap(each => ['-o', each]), ...words],
        ...['-p', String(await gate(name, port)), `${user}@127.0.0.1`, 'a command'],
      ],
      { env: { SSH_AUTH_SOCK: socket, PATH: process.env.PATH ?? '' }, stdout: 'pipe', stderr: 'pipe', stdin: 'ignore' },
    )
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    return stdout || stderr.trim().split('\n').at(-1)
  }
  const refusals = () => egress.decisions(SANDBOX).flatMap(({ reason }) => reason ?? [])
  return { egress, socket, ssh, gate, uses, refusals, said }
}

/** Sends bytes to an agent and gives what comes until it, or nothing more, is said. */
async function ask(socket: string, ...messages: Buffer[]): Promise<Buffer> {
  const client = connect(socket)
  const chunks: Buffer[] = []
  client.on('data', bytes => void chunks.push(Buffer.from(bytes))).on('error', () => {})
  for (const each of messages) client.write(each)
  client.end()
  await new Promise(resolve => client.once('close', resolve))
  return Buffer.concat(chunks)
}

const FAILURE = Buffer.from([0, 0, 0, 1, 5])
const publicKey = readPrivateKey(key.private).publicKey
const signRequest = (data: Buffer, flags = 0, of = publicKey) =>
  stringField(Buffer.concat([Buffer.of(13), stringField(of), stringField(data), numberField(flags)]))
const login = (sessionId: Buffer, user = 'git') =>
  Buffer.concat([
    ...[stringField(sessionId), Buffer.of(50), stringField(user), stringField('ssh-connection')],
    ...[stringField('publickey'), Buffer.of(1), stringField('ssh-ed25519'), stringField(publicKey)],
  ])

describe('a login is signed', () => {
  for (const kind of ['ed25519', 'rsa', 'ecdsa'] as const) {
    test(`by a key of ${kind}, at a host with one, and is told with the host and user`, async () => {
      const at = await serveSsh(kind)
      const hosts = [`git.test:${at.port}`]
      const { ssh, uses, refusals } = await openScene([secret('DEPLOY', { hosts }, keys[kind].private)])
      expect(await ssh('git.test', { port: at.port })).toBe('ran a command')
      expect(uses).toEqual([{ name: 'DEPLOY', host: 'git.test', port: at.port, method: 'SSH', path: 'git' }])
      expect(refusals()).toEqual([])
    })
  }

  test('with the host’s own key, where the binding names it', async () => {
    const hostKeys = [other.hostKey, server.hostKey]
    const { ssh } = await openScene([secret('DEPLOY', { as: { ssh: { user: 'git', hostKeys } } })])
    expect(await ssh('git.test')).toBe('ran a command')
  })
})

describe('a login is not signed, and the decisions say why', () => {
  const open: [string, Partial<BoundSecret>, Parameters<Awaited<ReturnType<typeof openScene>>['ssh']>, RegExp][] = [
    ['at another host', {}, ['other.test', { port: other.port }], /open connections to its hosts alone/],
    ['at another port', {}, ['git.test', { port: other.port }], /open connections to its hosts alone/],
    ['as another user', {}, ['git.test', { user: 'root' }], /no key is for root there/],
    [
      'where the host has another key than the binding names',
      { as: { ssh: { user: 'git', hostKeys: [other.hostKey] } } },
      ['git.test'],
      /the host has another key/,
    ],
  ]
  for (const [name, fields, [host, options], reason] of open) {
    test(name, async () => {
      const { egress, ssh, uses, refusals } = await openScene([secret('DEPLOY', fields)])
      expect(await ssh(host, options)).toContain('Permission denied (publickey)')
      expect(uses).toEqual([])
      expect(refusals()).toEqual([expect.stringMatching(reason)])
      expect(egress.decisions(SANDBOX)).toContainEqual(expect.objectContaining({ host: 'git.test', isAllowed: false }))
    })
  }

  test('at another host while a connection to its own host is open, regression', async () => {
    const { ssh, gate, refusals } = await openScene([secret('DEPLOY')])
    const held = connect({ host: '127.0.0.1', port: await gate('git.test', server.port) })
    const client = new ssh2.Client()
    // It has exchanged keys, and stays before its login.
    await new Promise<void>((resolve, reject) => {
      client.once('handshake', () => resolve()).once('error', reject)
      client.connect({ sock: held, username: 'nobody', authHandler: () => {} })
    })
    expect(await ssh('other.test', { port: other.port })).toContain('Permission denied')
    expect(refusals()).toHaveLength(1)
    client.on('error', () => {}).destroy()
  })

  test('that was signed before, once its connection has ended, regression', async () => {
    const { ssh, socket, said } = await openScene([secret('DEPLOY')])
    expect(await ssh('git.test')).toBe('ran a command')
    const again = Buffer.concat(said)
    const answers = await ask(socket, again)
    expect(answers.subarray(-5)).toEqual(FAILURE)
  })

  test('of a session that a program has made up, or as anything but a login, regression', async () => {
    const { socket, uses } = await openScene([secret('DEPLOY')])
    const data = [
      ...[login(Buffer.alloc(32)), login(Buffer.alloc(0)), login(Buffer.alloc(500)), Buffer.alloc(0)],
      ...[Buffer.from('tree of a commit'), Buffer.concat([login(Buffer.alloc(32)), Buffer.of(0)])],
      Buffer.concat([Buffer.from('SSHSIG'), stringField('git'), stringField(''), stringField('sha512')]),
    ]
    for (const each of data) expect(await ask(socket, signRequest(each))).toEqual(FAILURE)
    expect(await ask(socket, signRequest(login(Buffer.alloc(32)), 0, other.hostKey as never))).toEqual(FAILURE)
    expect(uses).toEqual([])
  })

  test('for another host that the agent was lent to, regression', async () => {
    const { socket, refusals } = await openScene([secret('DEPLOY')])
    const bind = Buffer.concat([
      ...[Buffer.of(27), stringField('session-bind@openssh.com'), stringField('key'), stringField('session')],
      ...[stringField('signature'), Buffer.of(1)],
    ])
    const answers = await ask(socket, stringField(bind), signRequest(login(Buffer.alloc(32))))
    expect(answers).toEqual(Buffer.concat([Buffer.from([0, 0, 0, 1, 6]), FAILURE]))
    expect(refusals()).toEqual([expect.stringContaining('not lent')])
  })

  test('with a secret that is no key, which other keys do not suffer from', async () => {
    const { ssh } = await openScene([secret('WRONG', {}, 'no key'), secret('DEPLOY')])
    expect(await ssh('git.test')).toBe('ran a command')
  })
})

describe('an agent', () => {
  test('lists the public half of each key once, and nothing else', async () => {
    const { socket } = await openScene([secret('DEPLOY'), secret('AGAIN'), secret('RSA', {}, keys.rsa.private)])
    const listed = await ask(socket, stringField(Buffer.of(11)))
    expect([listed[4], listed.readUInt32BE(5)]).toEqual([12, 2])
    expect(listed.includes(publicKey)).toBe(true)
    expect(listed.includes(readPrivateKey(key.private).publicKey)).toBe(true)
  })

  test('answers a message that comes byte by byte, and refuses what it does not know', async () => {
    const { socket } = await openScene([secret('DEPLOY')])
    const all = Buffer.concat([
      stringField(Buffer.of(11)),
      ...[1, 17, 18, 19, 22, 25, 255].map(kind => stringField(Buffer.of(kind))),
    ])
    const whole = await ask(socket, all)
    expect(whole.subarray(-7 * 5)).toEqual(Buffer.concat(Array.from({ length: 7 }, () => FAILURE)))
    const client = connect(socket)
    const chunks: Buffer[] = []
    client.on('data', bytes => void chunks.push(Buffer.from(bytes)))
    for (const byte of all) await new Promise<void>(resolve => client.write(Buffer.of(byte), () => resolve()))
    client.end()
    await new Promise(resolve => client.once('close', resolve))
    expect(Buffer.concat(chunks).equals(whole)).toBe(true)
  })

  test('ends a connection with a message that is malformed or too long, and serves the next', async () => {
    const { socket } = await openScene([secret('DEPLOY')])
    const request = signRequest(login(Buffer.alloc(32)))
    const cut = Buffer.from(request.subarray(0, 40))
    cut.writeUInt32BE(36)
    const bad = [
      Buffer.alloc(4),
      numberField(0xffffffff),
      numberField(64 * 1024 + 1),
      cut,
      stringField(Buffer.of(11, 0)),
    ]
    for (const each of bad) expect((await ask(socket, each, stringField(Buffer.of(11)))).length).toBe(0)
    expect((await ask(socket, stringField(Buffer.of(11))))[4]).toBe(12)
  })

  test('takes so many connections of one sandbox, and no more', async () => {
    const { socket } = await openScene([secret('DEPLOY')])
    const waiting = Array.from({ length: 32 }, () => connect(socket))
    await Promise.all(waiting.map(each => new Promise(resolve => each.once('connect', resolve))))
    // What is asked behind the others is read after they were taken.
    expect((await ask(socket, stringField(Buffer.of(11)))).length).toBe(0)
    for (const each of waiting) each.destroy()
    await Promise.all(waiting.map(each => new Promise(resolve => each.once('close', resolve))))
  })
})
