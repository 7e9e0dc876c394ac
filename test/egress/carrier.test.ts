import { afterEach, expect, test } from 'bun:test'
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type Carrier, createCarrier } from '../../src/egress/carrier/carrier.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean()
})

function opened(bounds?: Parameters<typeof createCarrier>[0]): Carrier {
  const carrier = createCarrier(bounds)
  cleanups.push(carrier.close)
  return carrier
}

/** Two ends of one connection. */
async function pair(): Promise<[Socket, Socket]> {
  const { promise, resolve } = Promise.withResolvers<Socket>()
  const server = createServer({ allowHalfOpen: true }, resolve)
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as { port: number }
  const near = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const far = await promise
  server.close()
  for (const socket of [near, far]) {
    socket.on('error', () => {})
    cleanups.push(() => socket.destroy())
  }
  return [near, far]
}

/** A tunnel, and the outer ends of its two connections. */
async function tunnel(carrier: Carrier) {
  const [[client, inner], [outer, server]] = [await pair(), await pair()]
  const carried = carrier.carry(inner, outer)
  if (!carried) throw new Error('not carried')
  return { client, server, carried }
}

const descriptors = () => readdirSync('/proc/self/fd').length

/** All that a socket receives, as its hash. */
async function digest(socket: Socket): Promise<string> {
  const hash = createHash('sha256')
  socket.on('data', piece => hash.update(piece))
  await new Promise(resolve => socket.once('end', resolve))
  return hash.digest('hex')
}

test('eight tunnels carry what is sent both ways at once, whole and in order', async () => {
  const carrier = opened()
  const first = await tunnel(carrier)
  first.carried.destroy()
  await first.carried.ended
  const before = descriptors()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      const { client, server, carried } = await tunnel(carrier)
      const [up, down] = [randomBytes(12 * MIB + 1), randomBytes(9 * MIB + 7)]
      client.end(up)
      server.end(down)
      const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
      expect(await Promise.all([digest(server), digest(client)])).toEqual([hash(up), hash(down)])
      await carried.ended
      for (const socket of [client, server]) socket.destroy()
    }),
  )
  // Up to eight pipes wait for the next use.
  await until(() => descriptors() <= before + 2 * 8)
})

test('a direction that has ended leaves the other one open', async () => {
  const { client, server, carried } = await tunnel(opened())
  server.on('data', () => {}).once('end', () => server.write('still here'))
  client.end('last words')
  const { promise, resolve } = Promise.withResolvers<string>()
  client.once('data', bytes => resolve(String(bytes)))
  expect(await promise).toBe('still here')
  server.end()
  await carried.ended
})

test.each(['the program', 'the server'])(
  'a tunnel that %s resets while bytes move is cut for the other',
  async which => {
    const { client, server, carried } = await tunnel(opened())
    const [breaking, other] = which === 'the program' ? [client, server] : [server, client]
    const piece = Buffer.alloc(MIB)
    const flood = () =>
      void (other.destroyed || (other.write(piece) ? setImmediate(flood) : other.once('drain', flood)))
    flood()
    await new Promise(resolve => breaking.once('data', resolve))
    breaking.resetAndDestroy()
    await carried.ended
    await until(() => other.destroyed)
  },
)

test('cutting one tunnel closes its connections, and others go on', async () => {
  const carrier = opened()
  const [one, other] = [await tunnel(carrier), await tunnel(carrier)]
  const closed = new Promise(resolve => one.client.once('close', resolve))
  one.client.resume()
  one.client.once('end', () => one.client.end())
  one.carried.destroy()
  await Promise.all([one.carried.ended, closed])
  const { promise, resolve } = Promise.withResolvers<string>()
  other.server.once('data', bytes => resolve(String(bytes)))
  other.client.write('hello')
  expect(await promise).toBe('hello')
})

test('tunnels in which nothing moves are cut after their time, with and without bytes that wait', async () => {
  const carrier = opened({ idleMs: 300, stalledMs: 100 })
  const [silent, stalled] = [await tunnel(carrier), await tunnel(carrier)]
  stalled.server.pause()
  const piece = Buffer.alloc(MIB)
  const flood = () => void (stalled.client.write(piece) ? setImmediate(flood) : stalled.client.once('drain', flood))
  flood()
  await Promise.all([silent.carried.ended, stalled.carried.ended])
})

test('five hundred idle tunnels have their sockets open and nothing else, and cost no time', async () => {
  const carrier = opened()
  const before = descriptors()
  const tunnels = await Promise.all(Array.from({ length: 500 }, () => tunnel(carrier)))
  // No pipes: those would be 2,000 more.
  await until(() => descriptors() < before + 4 * 500 + 50)
  const { user, system } = process.cpuUsage()
  await Bun.sleep(1000)
  const after = process.cpuUsage()
  expect(after.user + after.system - user - system).toBeLessThan(500_000)
  for (const { client, server } of tunnels) {
    client.destroy()
    server.destroy()
  }
  await Promise.all(tunnels.map(({ carried }) => carried.ended))
  await until(() => descriptors() < before + 50)
})

test('a socket that is closed already is not carried', async () => {
  const [[, inner], [outer]] = [await pair(), await pair()]
  inner.destroy()
  expect(opened().carry(inner, outer)).toBeUndefined()
  expect(outer.destroyed).toBe(false)
})

test.each([0, 1, 3, 5, 6])(
  'connections are left as they are when %d descriptors are free, too few to carry them: regression',
  async free => {
    // In a process of its own: what else this one closes meanwhile would be free too.
    const child = Bun.spawn([process.execPath, join(import.meta.dir, 'few-descriptors.ts'), `${free}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    expect(await child.stdout.text()).toBe('refused, refused, none kept, hello\n')
    expect(await child.exited).toBe(0)
  },
)
