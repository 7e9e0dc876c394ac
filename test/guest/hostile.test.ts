import { afterEach, describe, expect, test } from 'bun:test'
import { closeSync, constants, openSync, readdirSync } from 'node:fs'
import { Duplex } from 'node:stream'
import { copyDescriptor, openProcess } from '../../plugins/nsjail/host/process.ts'
import { connectGuest, type GuestOptions, MAX_GUEST_PAYLOAD_BYTES } from '../../src/guest/host/connect.ts'
import type { GuestDescriptors } from '../../src/guest/host/guest-descriptors.ts'
import { encodeFrame, json, kinds, MAX_PAYLOAD_BYTES, PROTOCOL } from '../../src/guest/wire/frame.ts'
import { MAX_PROXY_CALLS } from '../../src/guest/wire/requests.ts'
import { until } from '../support/until.ts'

/** A guest that sends whatever a test wants; what runs in a sandbox may have taken the real one over. */
function hostileGuest(hello: unknown = { protocol: PROTOCOL }) {
  const heard: Buffer[] = []
  const socket = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      heard.push(chunk)
      done()
    },
  })
  const say = (...frames: Uint8Array[]) => socket.push(Buffer.concat(frames))
  say(encodeFrame(kinds.hello, 0, json(hello)))
  return { socket, say, heard: () => Buffer.concat(heard).toString('latin1'), end: () => socket.push(null) }
}

const open: { close(): void }[] = []
afterEach(() => {
  for (const guest of open.splice(0)) guest.close()
})

async function connected(options: GuestOptions = {}) {
  const hostile = hostileGuest()
  const guest = await connectGuest(hostile.socket, options)
  open.push(guest)
  return { ...hostile, guest }
}

const lane = (number: number, bytes: Uint8Array) => Buffer.concat([Uint8Array.of(number), bytes])
const header = (length: number, kind: number, call: number) => {
  const bytes = Buffer.alloc(9)
  bytes.writeUInt32BE(length, 0)
  bytes.writeUInt8(kind, 4)
  bytes.writeUInt32BE(call, 5)
  return bytes
}

describe('a guest that breaks the rules loses its connection and nothing more: regression', () => {
  const breaches: [string, Uint8Array[]][] = [
    ['a frame longer than any', [header(MAX_PAYLOAD_BYTES + 1, kinds.data, 1)]],
    ['a second hello', [encodeFrame(kinds.hello, 0, json({ protocol: PROTOCOL }))]],
    ['JSON that takes long to read', [encodeFrame(kinds.reply, 1, Buffer.alloc(MAX_GUEST_PAYLOAD_BYTES + 1, '['))]],
    ['a frame of 4 GiB', [header(0xffffffff, kinds.reply, 1)]],
    ['a frame of unknown kind', [header(0, 99, 1)]],
    ['a reply that is no JSON', [encodeFrame(kinds.reply, 1, Buffer.from('{"pid":'))]],
    ['a close that is no JSON', [encodeFrame(kinds.close, 1, Buffer.from([0xff, 0xfe]))]],
    ['bytes for no lane', [encodeFrame(kinds.data, 1, lane(7, Buffer.from('x')))]],
    ['an empty data frame', [encodeFrame(kinds.data, 1)]],
    ['a credit without an amount', [encodeFrame(kinds.credit, 1, lane(0, Buffer.alloc(0)))]],
    ['credit that was never used', [encodeFrame(kinds.credit, 1, lane(0, Buffer.from([0, 0, 1, 0])))]],
    ['a call of its own', [encodeFrame(kinds.open, 2, json({ op: 'proxy' }))]],
    ['more bytes than the window', Array<Buffer>(8).fill(encodeFrame(kinds.data, 1, lane(1, Buffer.alloc(65_536))))],
    [
      'bytes after the end of a lane',
      [encodeFrame(kinds.end, 1, lane(1, Buffer.alloc(0))), encodeFrame(kinds.data, 1, lane(1, Buffer.from('x')))],
    ],
  ]
  test.each(breaches)('%s', async (_, frames) => {
    const { guest, say } = await connected()
    const spawned = guest.spawn({ command: 'true' })
    say(...frames)
    await expect(spawned).rejects.toMatchObject({ code: 'sandbox_unavailable' })
    await guest.closed
  })
})

describe('an answer of the wrong shape is refused where it enters', () => {
  const answers: [string, unknown][] = [
    ['a reply without a pid', {}],
    ['a pid that is no number', { pid: '1' }],
    ['null', null],
    ['a list', [1]],
  ]
  test.each(answers)('%s', async (_, answer) => {
    const { guest, say } = await connected()
    const spawned = guest.spawn({ command: 'true' })
    say(encodeFrame(kinds.reply, 1, json(answer)))
    await expect(spawned).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  })

  test('an exit without a code', async () => {
    const { guest, say } = await connected()
    const spawned = guest.spawn({ command: 'true' })
    say(encodeFrame(kinds.reply, 1, json({ pid: 5 })), encodeFrame(kinds.close, 1, json({ exitCode: 'zero' })))
    await expect((await spawned).exited).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  })

  test('an error code that the API does not have', async () => {
    const { guest, say } = await connected()
    const made = guest.files.makeDirectory('/x')
    say(encodeFrame(kinds.close, 1, json({ error: { code: '__proto__', message: 5 } })))
    await expect(made).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  })

  test('a file description with fields missing', async () => {
    const { guest, say } = await connected()
    const info = guest.files.info('/x')
    say(encodeFrame(kinds.close, 1, json({ info: { name: 'x', size: 'big' } })))
    await expect(info).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  })

  test('a listing that is no JSON', async () => {
    const { guest, say } = await connected()
    const listed = guest.files.list('/x')
    say(encodeFrame(kinds.data, 1, lane(1, Buffer.from('[{'))), encodeFrame(kinds.close, 1, json({})))
    await expect(listed).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  })
})

describe('output of a process that is not as it says is refused', () => {
  const answers: [string, string, unknown][] = [
    ['no offset', 'abc', { runs: [3] }],
    ['an offset below zero', 'abc', { offset: -1, runs: [3] }],
    ['no runs', 'abc', { offset: 0 }],
    ['longer runs than there are bytes', 'abc', { offset: 0, runs: [2, 2] }],
    ['shorter runs', 'abc', { offset: 0, runs: [1, -1] }],
    ['runs that are no lengths', 'abc', { offset: 0, runs: [1.5, 1.5] }],
    ['a run of nothing', 'abc', { offset: 0, runs: [3, 0] }],
    ['nothing, at once', '', { offset: 0, runs: [] }],
    ['an exit without a code', '', { offset: 0, runs: [], exit: {} }],
  ]
  test.each(answers)('%s', async (_, bytes, result) => {
    const { guest, say } = await connected()
    const read = guest.processes.read(5, 0, { wait: true })
    say(encodeFrame(kinds.data, 1, lane(1, Buffer.from(bytes))), encodeFrame(kinds.close, 1, json(result)))
    await expect(read).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  })

  test('more than one answer may have', async () => {
    const { guest, say } = await connected()
    const read = guest.processes.read(5, 0, { wait: true })
    for (let index = 0; index < 3; index++) say(encodeFrame(kinds.data, 1, lane(1, Buffer.alloc(65_536))))
    await expect(read).rejects.toMatchObject({ code: 'invalid_request' })
  })

  const sleeper = {
    pid: 1,
    command: 'true',
    stdin: false,
    startedAt: '2026-01-01T00:00:00Z',
    outputStart: 0,
    outputEnd: 0,
  }
  const lists: [string, object[]][] = [
    [
      'more processes than a sandbox keeps',
      Array.from({ length: 1000 }, (_, index) => ({ ...sleeper, pid: index + 1 })),
    ],
    ['a process that began at no time', [{ ...sleeper, startedAt: 'x' }]],
    ['a process that ended at no time', [{ ...sleeper, endedAt: 'x' }]],
    ['an end by a signal that is none', [{ ...sleeper, exit: { exitCode: 1, signal: 'x'.repeat(100_000) } }]],
  ]
  test.each(lists)('%s: regression', async (_, processes) => {
    const { guest, say } = await connected()
    const listed = guest.processes.list()
    const text = Buffer.from(JSON.stringify(processes))
    for (let at = 0; at < text.length; at += 32_768)
      say(encodeFrame(kinds.data, 1, lane(1, text.subarray(at, at + 32_768))))
    say(encodeFrame(kinds.close, 1, json({})))
    await expect(listed).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  })

  test('a process that is none', async () => {
    const { guest, say } = await connected()
    const started = guest.processes.start({ command: 'true' })
    say(encodeFrame(kinds.close, 1, json({ process: { pid: 1, command: 5 } })))
    await expect(started).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  })
})

test('frames cut anywhere are put together again', async () => {
  const { guest, say } = await connected()
  const spawned = guest.spawn({ command: 'true' })
  const bytes = Buffer.concat([
    encodeFrame(kinds.reply, 1, json({ pid: 5 })),
    encodeFrame(kinds.data, 1, lane(1, Buffer.from('out'))),
    encodeFrame(kinds.close, 1, json({ exitCode: 3 })),
  ])
  for (const byte of bytes) say(Uint8Array.of(byte))
  const child = await spawned
  expect(await new Response(child.stdout).text()).toBe('out')
  expect(await child.exited).toEqual({ exitCode: 3 })
})

test('frames for a call that has ended are passed over', async () => {
  const { guest, say } = await connected()
  const made = guest.files.makeDirectory('/x')
  say(encodeFrame(kinds.close, 1, json({ made: true })), encodeFrame(kinds.data, 1, lane(1, Buffer.from('late'))))
  expect(await made).toBe(true)
  const again = guest.files.makeDirectory('/y')
  say(encodeFrame(kinds.close, 3, json({ made: false })))
  expect(await again).toBe(false)
})

test('a guest of another protocol, or none, is refused', async () => {
  for (const hello of [{ protocol: PROTOCOL + 1 }, {}, 'hello']) {
    const refused = connectGuest(hostileGuest(hello).socket)
    await expect(refused).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  }
})

test('a connection that ends fails what was under way', async () => {
  const { guest, end } = await connected()
  const spawned = guest.spawn({ command: 'true' })
  end()
  await expect(spawned).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  await guest.closed
  await expect(guest.spawn({ command: 'true' })).rejects.toMatchObject({ code: 'sandbox_unavailable' })
})

/** Of this process, in place of a guest's. */
function ownDescriptors(): GuestDescriptors {
  const own = openProcess(process.pid)
  return {
    take: number => copyDescriptor(own, number),
    maxFileBytes: () => 1000,
    pendingBytes: () => 0,
    widenPipe() {},
    close: own.close,
  }
}
const openings: [string, () => number][] = [
  ['a directory', () => openSync('/', constants.O_RDONLY)],
  ['a device', () => openSync('/dev/zero', constants.O_RDWR)],
  ['a file of the kernel', () => openSync('/proc/self/mem', constants.O_RDWR)],
  ['a file of the host', () => openSync(import.meta.path, constants.O_RDONLY)],
  ['a number without a descriptor', () => 1_000_000],
]
const descriptorCount = () => readdirSync('/proc/self/fd').length

describe('a guest that names a descriptor which is not what it should be', () => {
  const numbers: [string, unknown][] = [
    ['no number', 'x'],
    ['a number below zero', -1],
    ['half a number', 1.5],
  ]
  const offers = [...openings, ...numbers.map(([what, value]) => [what, () => value] as const)]
  async function offered(descriptor: unknown) {
    const hostile = hostileGuest({ protocol: PROTOCOL, offersDescriptors: true })
    const guest = await connectGuest(hostile.socket, { openDescriptors: ownDescriptors })
    open.push(guest)
    return { ...hostile, guest, reply: encodeFrame(kinds.reply, 1, json({ size: 5, descriptor })) }
  }

  test.each(offers)('%s, for a read: it is asked for the bytes instead: regression', async (_, openOne) => {
    const descriptor = openOne()
    const before = descriptorCount()
    const { guest, say, heard, reply } = await offered(descriptor)
    const reading = guest.files.read('/x')
    say(reply)
    await until(() => heard().includes('{"op":"read","path":"/x"}'))
    say(
      encodeFrame(kinds.reply, 3, json({ size: 5 })),
      encodeFrame(kinds.data, 3, lane(1, Buffer.from('bytes'))),
      encodeFrame(kinds.close, 3, json({})),
    )
    expect(await new Response((await reading).body).text()).toBe('bytes')
    guest.close()
    await until(() => descriptorCount() === before)
    if (typeof descriptor === 'number' && descriptor > 2 && descriptor < 1_000_000) closeSync(descriptor)
  })

  test.each(offers)('%s, for a write: it is sent the bytes instead: regression', async (_, openOne) => {
    const descriptor = openOne()
    const before = descriptorCount()
    const { guest, say, reply } = await offered(descriptor)
    const writing = guest.files.write('/x', new Blob(['bytes']).stream())
    say(reply, encodeFrame(kinds.close, 1, json({ size: 5 })))
    expect(await writing).toBe(5)
    guest.close()
    await until(() => descriptorCount() === before)
    if (typeof descriptor === 'number' && descriptor > 2 && descriptor < 1_000_000) closeSync(descriptor)
  })
})

describe('a guest that offers the output of a command', () => {
  const offer = (descriptor: unknown, number = 1) =>
    encodeFrame(kinds.control, 1, json({ offered: { lane: number, descriptor } }))
  const drain = (number: number) => encodeFrame(kinds.control, 1, json({ drain: number }))

  async function spawning() {
    const hostile = hostileGuest({ protocol: PROTOCOL, offersDescriptors: true })
    const guest = await connectGuest(hostile.socket, { openDescriptors: ownDescriptors })
    open.push(guest)
    return { ...hostile, guest, spawned: guest.spawn({ command: 'true' }) }
  }

  const breaches: [string, Uint8Array[]][] = [
    ['twice', [offer(1_000_000), offer(1_000_000)]],
    ['for the lane of the input', [offer(0, 0)]],
    ['for no lane', [offer(0, 7)]],
    ['and wants one drained that it did not offer', [drain(1)]],
    ['and wants one drained that was refused', [offer(1_000_000), drain(1)]],
  ]
  test.each(breaches)('%s loses its connection: regression', async (_, frames) => {
    const { guest, say, spawned } = await spawning()
    say(...frames)
    await expect(spawned).rejects.toMatchObject({ code: 'sandbox_unavailable' })
    await guest.closed
  })

  test.each(openings)('with %s is refused it, and asked for the bytes: regression', async (_, openOne) => {
    const descriptor = openOne()
    const before = descriptorCount()
    const { say, heard, spawned } = await spawning()
    say(offer(descriptor))
    await until(() => heard().includes('{"reads":{"lane":1,"isReading":false}}'))
    say(
      encodeFrame(kinds.reply, 1, json({ pid: 5 })),
      encodeFrame(kinds.data, 1, lane(1, Buffer.from('out'))),
      encodeFrame(kinds.close, 1, json({ exitCode: 0 })),
    )
    expect(await new Response((await spawned).stdout).text()).toBe('out')
    await until(() => descriptorCount() <= before + 1)
    if (descriptor < 1_000_000) closeSync(descriptor)
  })
})

describe('a guest that may open connections to the proxy', () => {
  const request = json({ op: 'proxy' })
  const opening = (id: number) => encodeFrame(kinds.open, id, request)

  const breaches: [string, Uint8Array[]][] = [
    ['with an id of the host', [opening(9)]],
    ['twice', [opening(2), opening(2)]],
    ['for anything else', [encodeFrame(kinds.open, 2, json({ op: 'connect', port: 22 }))]],
    ['with no JSON', [encodeFrame(kinds.open, 2, Buffer.from('{'))]],
    ['more than it may', Array.from({ length: MAX_PROXY_CALLS + 1 }, (_, index) => opening(2 * index + 2))],
    [
      'and sends more than the window',
      [opening(2), ...Array<Buffer>(8).fill(encodeFrame(kinds.data, 2, lane(0, Buffer.alloc(65_536))))],
    ],
  ]
  test.each(breaches)('loses its connection when it does so %s: regression', async (_, frames) => {
    const sockets: Duplex[] = []
    const { guest, say } = await connected({ onProxy: socket => sockets.push(socket.on('error', () => {})) })
    say(...frames)
    await guest.closed
    await Promise.all(sockets.map(socket => socket.destroyed || new Promise(resolve => socket.once('close', resolve))))
  })

  test('may open as many as it likes one after the other', async () => {
    let opened = 0
    const { guest, say } = await connected({ onProxy: () => opened++ })
    for (let id = 2; id < 4 * MAX_PROXY_CALLS; id += 2) say(opening(id), encodeFrame(kinds.close, id, json({})))
    const made = guest.files.makeDirectory('/x')
    say(encodeFrame(kinds.close, 1, json({ made: true })))
    expect([await made, opened, guest.activeCalls]).toEqual([true, 2 * MAX_PROXY_CALLS - 1, 0])
  })

  test('and reads nothing of what it is answered loses its connection at a bound: regression', async () => {
    const socket = new Duplex({ read() {}, write: () => {} })
    socket.push(encodeFrame(kinds.hello, 0, json({ protocol: PROTOCOL })))
    const guest = await connectGuest(socket, {
      onProxy: proxied => void proxied.on('error', () => {}).write(Buffer.alloc(200_000)),
    })
    open.push(guest)
    let isClosed = false
    void guest.closed.then(() => (isClosed = true))
    for (let id = 2; !isClosed && id < 10_000; id += 2) {
      socket.push(Buffer.concat([opening(id), encodeFrame(kinds.close, id, json({}))]))
      await new Promise<void>(resolve => setImmediate(resolve))
    }
    expect(isClosed).toBe(true)
    expect(socket.writableLength).toBeLessThan(128 * 1024 * 1024)
  })
})

test('a guest that ignores a kill loses its connection, and nobody waits for it: regression', async () => {
  const { socket, say } = hostileGuest()
  const guest = await connectGuest(socket, { killedWithinMs: 20 })
  open.push(guest)
  const spawned = guest.spawn({ command: 'sleep 1000' })
  say(encodeFrame(kinds.reply, 1, json({ pid: 5 })))
  const child = await spawned
  child.kill('SIGTERM')
  child.kill()
  await expect(child.exited).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  await guest.closed
})
