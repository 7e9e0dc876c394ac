import { expect, test } from 'bun:test'
import { Duplex } from 'node:stream'
import { askGuest, findMismatch } from '../../src/guest/host/ask-guest.ts'
import { answerRequest } from '../../src/guest/inside/answer-request.ts'
import { Channel } from '../../src/guest/wire/channel.ts'
import { PROTOCOL } from '../../src/guest/wire/frame.ts'
import { hello, knownSince, OLDEST_GUEST, WIRE_VERSION } from '../../src/guest/wire/version.ts'

const nowhere = () => new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
const since = { ...knownSince, mkdir: WIRE_VERSION + 1 }

test('a guest that is too old for a request has it refused in words, and goes on with others', () => {
  const channel = new Channel(nowhere(), { side: 'host' })
  const ask = askGuest(channel, hello(PROTOCOL), since)
  expect(() => ask({ op: 'mkdir', path: '/d' })).toThrow(/runs since an earlier version of threadbox.*mkdir/)
  expect(ask({ op: 'info', path: '/d' }).isOver).toBe(false)
  expect([channel.isOpen, channel.callCount]).toEqual([true, 1])
})

test('a guest that says no version is of before there were any', () => {
  const channel = new Channel(nowhere(), { side: 'host' })
  const former = { protocol: PROTOCOL, offersDescriptors: true }
  expect(findMismatch(former)).toBeUndefined()
  const ask = askGuest(channel, former, { ...knownSince, mkdir: 1 })
  expect(() => ask({ op: 'mkdir', path: '/d' })).toThrow(/earlier version/)
  expect(ask({ op: 'spawn', env: {}, stdin: false, shell: 'true' }).isOver).toBe(false)
})

test('a guest of a later server’s time is worked with, unless it asks for a later server', () => {
  const later = { ...hello(PROTOCOL), version: WIRE_VERSION + 9, more: 'later' }
  expect(findMismatch(later)).toBeUndefined()
  expect(findMismatch({ ...later, oldestServer: WIRE_VERSION + 1 })).toMatch(
    `another version of threadbox (${later.version}, for`,
  )
  expect(findMismatch({ ...later, version: OLDEST_GUEST - 1 })).toMatch(/another version of threadbox \(-1;/)
})

test('a guest refuses in words what it does not know', async () => {
  for (const op of ['dream', 'toString', undefined]) {
    const answer = answerRequest({} as never, { op } as never, {} as never)
    await expect(answer).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('earlier version of threadbox'),
    })
  }
})
