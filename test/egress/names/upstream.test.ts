import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { createServer, type Server as TcpServer } from 'node:net'
import { createFindRecords, type Server, systemServers } from '../../../src/egress/names/upstream.ts'
import { dice, seed } from '../../faults/random.ts'
import { temporaryDirectory } from '../../support/server.ts'
import { kinds, nameBytes } from './dns.ts'

setDefaultTimeout(60_000)

type Reply = (query: Buffer, transport: 'udp' | 'tcp') => Buffer[]

const open: { close(): unknown }[] = []
afterEach(() => {
  for (const each of open.splice(0)) each.close()
})

/** A resolver on a port of its own, with whatever answers. */
async function resolver(reply: Reply): Promise<Server & { heard: Buffer[] }> {
  const heard: Buffer[] = []
  const tcp: TcpServer = createServer(socket => {
    socket
      .on('error', () => {})
      .on('data', (chunk: Buffer) => {
        for (const answer of reply(chunk.subarray(2), 'tcp')) {
          const length = Buffer.of(answer.byteLength >> 8, answer.byteLength & 255)
          for (const part of [length.subarray(0, 1), length.subarray(1), answer.subarray(0, 7), answer.subarray(7)])
            socket.write(part)
        }
      })
  })
  await new Promise<void>(resolve => tcp.listen(0, '127.0.0.1', resolve))
  const address = tcp.address()
  const port = address && typeof address === 'object' ? address.port : 0
  const udp = await Bun.udpSocket({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(socket, bytes, from, host) {
        heard.push(Buffer.from(bytes))
        for (const answer of reply(Buffer.from(bytes), 'udp')) socket.send(answer, from, host)
      },
    },
  })
  open.push(udp, tcp)
  return { host: '127.0.0.1', port, heard }
}

const questionOf = (query: Buffer) => query.subarray(12, query.indexOf(0, 12) + 5)

function answer(
  query: Buffer,
  records: Buffer[],
  { flags = 0x8180, id = query.readUInt16BE(0), question = questionOf(query) } = {},
): Buffer {
  const head = Buffer.alloc(12)
  for (const [index, value] of [id, flags, 1, records.length, 0, 0].entries()) head.writeUInt16BE(value, index * 2)
  return Buffer.concat([head, question, ...records])
}

/** Its owner is a pointer to the question. */
function record(type: number, data: Buffer, ttl = 3600): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(ttl, 6)
  head.writeUInt16BE(data.byteLength, 10)
  return Buffer.concat([head, data])
}

const find = (servers: Server[], answersWithinMs = 10_000) =>
  createFindRecords({ servers: () => servers, answersWithinMs })
const hex = (records: { data: Uint8Array }[]) => records.map(({ data }) => Buffer.from(data).toString('hex'))
const TO_QUESTION = Buffer.of(0xc0, 12)

test('records are those of the kind that was asked for, with names that are whole', async () => {
  const db = Buffer.concat([Buffer.of(0, 1, 0, 2, 21, 56), Buffer.from('\x02db'), TO_QUESTION])
  const soa = Buffer.concat([Buffer.from('\x02ns'), TO_QUESTION, TO_QUESTION, Buffer.alloc(20, 7)])
  const naptr = Buffer.concat([Buffer.of(0, 1, 0, 2), Buffer.from('\x01S\x03SIP\x00'), TO_QUESTION])
  const txt = Buffer.from([3, 0xff, 0, 0x80, 1, 97])
  const server = await resolver(query => [
    answer(query, [
      record(kinds.CNAME, TO_QUESTION),
      record(kinds.A, Buffer.of(10, 0, 0, 1)),
      record(kinds.SRV, db, 5),
      record(kinds.SOA, soa),
      record(35, naptr),
      record(kinds.TXT, txt),
      record(kinds.MX, Buffer.concat([Buffer.of(0, 9), TO_QUESTION])),
    ]),
  ])
  const ask = find([server])
  const name = nameBytes('example.com').toString('hex')
  const srv = await ask('example.com', kinds.SRV)
  expect([hex(srv), srv[0]?.ttl]).toEqual([[`000100021538026462${name}`], 5])
  expect(hex(await ask('example.com', kinds.SOA))).toEqual([`026e73${name}${name}${'07'.repeat(20)}`])
  expect(hex(await ask('example.com', 35))).toEqual([`0001000201530353495000${name}`])
  expect(hex(await ask('example.com', kinds.TXT))).toEqual([txt.toString('hex')])
  const mx = await ask('example.com', kinds.MX)
  expect([hex(mx), mx[0]?.ttl]).toEqual([[`0009${name}`], 60])
  expect(await ask('example.com', kinds.CAA)).toEqual([])
})

test('what does not fit into UDP is asked for over TCP', async () => {
  const long = record(
    kinds.TXT,
    Buffer.concat(Array<Buffer>(200).fill(Buffer.from(`\xff${'x'.repeat(255)}`, 'latin1'))),
  )
  const server = await resolver((query, transport) => [
    transport === 'udp' ? answer(query, [], { flags: 0x8380 }) : answer(query, [long]),
  ])
  const [found] = await find([server])('example.com', kinds.TXT)
  expect(found?.data.byteLength).toBe(200 * 256)
})

test('a name that is not there is known as such, and one that fails is asked of the next resolver', async () => {
  const missing = await resolver(query => [answer(query, [], { flags: 0x8183 })])
  const failing = await resolver(query => [answer(query, [], { flags: 0x8182 })])
  const silent = await resolver(() => [])
  await expect(find([missing])('example.com', kinds.MX)).rejects.toMatchObject({ code: 'ENOTFOUND' })
  await expect(find([failing, missing])('example.com', kinds.MX)).rejects.toMatchObject({ code: 'ENOTFOUND' })
  await expect(find([silent, missing], 20)('example.com', kinds.MX)).rejects.toMatchObject({ code: 'ENOTFOUND' })
  const given = await find([failing])('example.com', kinds.MX).catch(error => error)
  expect([given.code, failing.heard.length]).toEqual([undefined, 3])
  const nobody = { host: '127.0.0.1', port: 1 }
  await expect(find([nobody, missing], 20)('example.com', kinds.MX)).rejects.toMatchObject({ code: 'ENOTFOUND' })
})

test('a resolver that knows no EDNS is asked without', async () => {
  const server = await resolver(query => [
    query.readUInt16BE(10) === 0
      ? answer(query, [record(kinds.TXT, Buffer.from('\x01a'))])
      : answer(query, [], { flags: 0x8181 }),
  ])
  expect(hex(await find([server])('example.com', kinds.TXT))).toEqual(['0161'])
})

test('an answer to another question, or with another number, is not heeded: regression', async () => {
  const txt = (text: string) => record(kinds.TXT, Buffer.from(`${String.fromCharCode(text.length)}${text}`))
  const server = await resolver(query => {
    const id = query.readUInt16BE(0)
    const other = Buffer.concat([nameBytes('evil.example'), Buffer.of(0, 16, 0, 1)])
    return [
      answer(query, [txt('number')], { id: (id + 1) & 0xffff }),
      answer(query, [txt('question')], { question: other }),
      answer(query, [txt('query')], { flags: 0x0100 }),
      Buffer.of(1, 2, 3),
      answer(query, [txt('true')]),
    ]
  })
  expect(hex(await find([server])('example.com', kinds.TXT))).toEqual([Buffer.from('\x04true').toString('hex')])
  const numbers = new Set<number>()
  for (let round = 0; round < 8; round++) await find([server])('example.com', kinds.TXT)
  for (const query of server.heard) numbers.add(query.readUInt16BE(0))
  expect(numbers.size).toBeGreaterThan(4)
})

test('broken answers end soon, with whole records or none: regression', async () => {
  const roll = dice(seed)
  const server = await resolver(query => {
    const bytes = answer(query, [
      record(kinds.SOA, Buffer.concat([TO_QUESTION, TO_QUESTION, Buffer.alloc(20)])),
      record(kinds.SOA, Buffer.concat([nameBytes('a.b.c'), Buffer.of(0xc0, 200), Buffer.alloc(20)])),
    ])
    const start = 12 + questionOf(query).byteLength
    for (let change = roll(5); change > 1; change--) bytes[start + roll(bytes.byteLength - start) - 1] = roll(256) - 1
    const cut = bytes.subarray(0, roll(2) === 1 ? start + roll(bytes.byteLength - start) : bytes.byteLength)
    // The next is whole, so that nobody waits.
    return [cut, answer(query, [])]
  })
  const ask = find([server])
  for (let round = 0; round < 500; round++) {
    for (const { data } of await ask('example.com', kinds.SOA)) expect(data.byteLength).toBeGreaterThanOrEqual(22)
  }
})

test('thousands of records of names within names are read no further than a bound: regression', async () => {
  const deep = Buffer.concat([...Array<Buffer>(126).fill(Buffer.from('\x01a')), Buffer.of(0)])
  const many = (query: Buffer) => [
    record(kinds.NS, deep),
    ...Array<Buffer>(4500).fill(record(kinds.NS, Buffer.of(0xc0, 12 + questionOf(query).byteLength + 12))),
  ]
  const server = await resolver((query, transport) => [
    transport === 'udp' ? answer(query, [], { flags: 0x8380 }) : answer(query, many(query)),
  ])
  expect((await find([server])('example.com', kinds.NS)).length).toBe(256)
})

test('the resolvers are those of resolv.conf', async () => {
  const path = `${temporaryDirectory()}/resolv.conf`
  await Bun.write(
    path,
    '# nameserver 9.9.9.9\nsearch example.com\nnameserver 1.1.1.1\n nameserver\tfe80::1%eth0\noptions ndots:2\nnameserver 127.0.0.53\nnameserver 4.4.4.4\n',
  )
  expect(systemServers(path)).toEqual(['1.1.1.1', 'fe80::1%eth0', '127.0.0.53'].map(host => ({ host, port: 53 })))
  await Bun.write(path, '')
  expect(systemServers(path)).toEqual([{ host: '127.0.0.1', port: 53 }])
  expect(systemServers('/nowhere')).toEqual([{ host: '127.0.0.1', port: 53 }])
})
