import { afterEach, expect, test } from 'bun:test'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { createEgress, type Egress } from '../../src/egress/egress.ts'
import { createNamePool } from '../../src/egress/names/pool.ts'
import type { Policy } from '../../src/egress/policy.ts'
import { parseRules } from '../../src/egress/rules.ts'
import { all, dialed, listen, loopback, openPolicy, SANDBOX, until } from './support.ts'

const pool = createNamePool(SANDBOX)
const POOL = pool.addressFor('db.test', 4)

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** What programs connect to, as where `destination` says; the pool's one address stands for db.test, which is on 127.0.0.1. */
async function openGate(policy: Policy, destination: { address: string; port: number }, sandbox = SANDBOX) {
  const egress: Egress = createEgress({
    policyOf: () => policy,
    log() {},
    createPool: id => (id === SANDBOX ? pool : createNamePool(id)),
    resolve: async () => ['127.0.0.1'],
  })
  const ending = new AbortController()
  const server = createServer({ allowHalfOpen: true }, socket =>
    egress.serveDirect(sandbox, socket, destination, ending.signal),
  )
  const port = await listen(server, '127.0.0.1')
  closing.push(() => {
    egress.close()
    server.close()
  })
  return { egress, port, ending }
}

async function serve(answer: (socket: Socket) => void): Promise<number> {
  const server: Server = createServer({ allowHalfOpen: true }, answer)
  closing.push(() => server.close())
  return await listen(server, '127.0.0.1')
}

/** How a connection ends: a code of an error, or `end`. */
const endOf = (socket: Socket) =>
  new Promise<string>(resolve => {
    socket.on('error', error => resolve('code' in error ? String(error.code) : error.message))
    socket.once('end', () => resolve('end')).resume()
  })

test('an address of the pool leads to its name, by a rule on the name and port', async () => {
  const port = await serve(socket => void socket.pipe(socket))
  const policy = { ...loopback, layers: [{ allow: parseRules([`db.test:${port}`, '127.0.0.0/8']), deny: [] }] }
  const gate = await openGate(policy, { address: POOL, port })
  const socket = await dialed(gate.port)
  socket.write('early')
  expect(await until(socket, 'early')).toBe('early')
  socket.end(' and late')
  expect(await all(socket)).toBe(' and late')
  expect(gate.egress.decisions(SANDBOX)).toMatchObject([{ host: 'db.test', port, isAllowed: true }])
})

test('what a server says after the program has ended its side still arrives', async () => {
  const port = await serve(socket => void all(socket.on('end', () => socket.end('the whole answer'))))
  const gate = await openGate(loopback, { address: POOL, port })
  const socket = await dialed(gate.port)
  socket.end('the whole question')
  expect(await all(socket)).toBe('the whole answer')
})

test.each([
  ['an address that no rule allows', openPolicy, { address: '10.1.2.3', port: 443 }, 'its address is not public'],
  ['the metadata of a cloud', openPolicy, { address: '169.254.169.254', port: 80 }, 'its address is not public'],
  ['an IPv6 address for an IPv4 one', openPolicy, { address: '::ffff:10.1.2.3', port: 80 }, 'stands for an IPv4'],
  ['the server itself', openPolicy, { address: '127.0.0.1', port: 3129 }, 'its address is not public'],
  ['an address of the pool that stands for no name', loopback, { address: '198.18.0.9', port: 80 }, 'no name'],
  ['one of the pool’s IPv6', loopback, { address: 'fd74:6872:6561:6462::9', port: 80 }, 'no name'],
  ['a name that a rule denies', { ...openPolicy, mode: 'none' as const }, { address: POOL, port: 80 }, 'no network'],
])('%s is refused with a reset, and the decisions say why', async (_what, policy, destination, reason) => {
  const gate = await openGate(policy, destination)
  const socket = connect({ port: gate.port, host: '127.0.0.1' })
  expect(await endOf(socket)).toBe('ECONNRESET')
  const [decision] = gate.egress.decisions(SANDBOX)
  expect(decision).toMatchObject({ isAllowed: false, port: destination.port, count: 1 })
  expect(decision?.reason).toContain(reason)
})

test('an address that stands for a name in one sandbox stands for nothing in another: regression', async () => {
  const port = await serve(socket => void socket.end('reached'))
  const gate = await openGate(loopback, { address: POOL, port }, 'env_other')
  expect(await endOf(connect({ port: gate.port, host: '127.0.0.1' }))).toBe('ECONNRESET')
  expect(gate.egress.decisions('env_other')).toMatchObject([{ host: POOL, isAllowed: false }])
})

test('an address that nobody answers at is a reset', async () => {
  const server = createServer()
  const port = await listen(server, '127.0.0.1')
  await new Promise(resolve => server.close(resolve))
  const gate = await openGate(loopback, { address: POOL, port })
  expect(await endOf(connect({ port: gate.port, host: '127.0.0.1' }))).toBe('ECONNRESET')
  const [decision] = gate.egress.decisions(SANDBOX)
  expect(decision).toMatchObject({ host: 'db.test', isAllowed: true, reason: 'it cannot be reached: ECONNREFUSED' })
})

test('connections beyond the limit that the proxy shares are reset, and the signal cuts the others', async () => {
  const held: Socket[] = []
  const port = await serve(socket => void held.push(socket.on('error', () => {})))
  const gate = await openGate(loopback, { address: POOL, port })
  const open = await Promise.all(Array.from({ length: 256 }, () => dialed(gate.port)))
  expect(await endOf(connect({ port: gate.port, host: '127.0.0.1' }))).toBe('ECONNRESET')
  const ends = open.map(endOf)
  gate.ending.abort()
  await Promise.all(ends)
})
