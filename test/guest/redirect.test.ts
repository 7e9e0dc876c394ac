import { describe, expect, test } from 'bun:test'
import { constants } from 'node:os'
import { exchange, type NetlinkSocket, readErrors } from '../../src/guest/redirect/netlink.ts'
import { isOwnAddress, readSocketAddress } from '../../src/guest/redirect/original-destination.ts'
import { redirectNetwork } from '../../src/guest/redirect/redirect.ts'

/** A kernel that refuses the messages of which `refuse` gives the name of an error. Each message is known by its number and its type. */
function kernel(refuse: (type: number, batch: number) => string | undefined) {
  const sent: Buffer[] = []
  const answers: Uint8Array[] = []
  const socket: NetlinkSocket = {
    send(bytes) {
      const batch = Buffer.from(bytes)
      sent.push(batch)
      for (let at = 0; at < batch.byteLength; at += (batch.readUInt32LE(at) + 3) & ~3) {
        const code = refuse(batch.readUInt16LE(at + 4), sent.length)
        answers.push(answer(batch.readUInt32LE(at + 8), code ? constants.errno[code as 'EPERM'] : 0))
      }
    },
    receive: () => answers.shift(),
  }
  return { socket, sent }
}

function answer(sequence: number, errno: number): Buffer {
  const bytes = Buffer.alloc(36)
  bytes.writeUInt32LE(36, 0)
  bytes.writeUInt16LE(2, 4)
  bytes.writeUInt32LE(sequence, 8)
  bytes.writeInt32LE(-errno, 16)
  return bytes
}

const willing = () => kernel(() => undefined)
const [NEWCHAIN, NEWTABLE, DELTABLE] = [0xa03, 0xa00, 0xa02]

describe('a kernel that cannot redirect is named', () => {
  test.each([
    ['EPERM', NEWTABLE, 'the server may not change networks (nf_tables: EPERM)'],
    ['ENOTSUP', NEWTABLE, 'Linux has no nf_tables: ENOTSUP'],
    ['ENOENT', NEWCHAIN, 'Linux has no chains of the type nat: ENOENT'],
    ['ENOENT', 0xa06, 'Linux has no rules of the chain nat: ENOENT'],
  ])('%s for the message %d', (code, refused, words) => {
    const route = willing()
    const { socket } = kernel(type => (type === refused ? code : undefined))
    expect(() => redirectNetwork({ netfilter: socket, route: route.socket })).toThrow(words)
    // No way to everywhere is made without the rules.
    expect(route.sent).toEqual([])
  })
})

test('rules that are there are replaced, in one change', () => {
  const { socket, sent } = kernel((type, batch) => (type === NEWTABLE && batch === 1 ? 'EEXIST' : undefined))
  redirectNetwork({ netfilter: socket, route: willing().socket })
  expect(sent[1]?.readUInt16LE(20 + 4)).toBe(DELTABLE)
})

test('a network without IPv6 has the way of IPv4', () => {
  const ways: number[] = []
  const { socket } = kernel((_type, batch) => (batch === 2 ? 'EACCES' : void ways.push(batch)))
  redirectNetwork({ netfilter: willing().socket, route: socket })
  expect(ways).toEqual([1, 3, 4])
})

test('answers that are cut short or make no sense are read to their end', () => {
  const good = answer(7, 1)
  for (let length = 0; length < good.byteLength; length++) expect([...readErrors(good.subarray(0, length))]).toEqual([])
  const zeroLength = Buffer.from(good)
  zeroLength.writeUInt32LE(0, 0)
  expect([...readErrors(zeroLength)]).toEqual([])
  const answers = [good, Buffer.from('no netlink'), zeroLength]
  const silent: NetlinkSocket = { send() {}, receive: () => answers.shift() }
  expect(exchange(silent, [])).toEqual([])
})

test('an original destination is read as text', () => {
  const four = Uint8Array.of(2, 0, 0x15, 0x38, 203, 0, 113, 5, 0, 0, 0, 0, 0, 0, 0, 0)
  expect(readSocketAddress(4, four)).toEqual({ address: '203.0.113.5', port: 5432 })
  const six = Uint8Array.of(10, 0, 0, 22, 0, 0, 0, 0, 0xfd, ...Array<number>(14).fill(0), 5, 0, 0, 0, 0)
  expect(readSocketAddress(6, six)).toEqual({ address: 'fd00::5', port: 22 })
  expect(['127.0.0.1', '127.9.9.9', '::1', '1.2.3.4', 'fd00::5'].map(isOwnAddress)).toEqual([
    ...[true, true, true],
    ...[false, false],
  ])
})
