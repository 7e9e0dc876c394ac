import { afterEach, expect, test } from 'bun:test'
import { Duplex } from 'node:stream'
import { connectGuest } from '../../src/guest/host/connect.ts'
import type { AnswerName } from '../../src/guest/host/outlets.ts'
import type { OnMessage } from '../../src/guest/inside/name-listener.ts'
import { createNameGate } from '../../src/guest/inside/names.ts'
import { Channel } from '../../src/guest/wire/channel.ts'
import { encodeFrame, json, kinds, PROTOCOL } from '../../src/guest/wire/frame.ts'
import { createNameDecoder, encodeNameMessage, MAX_QUESTION_BYTES } from '../../src/guest/wire/name-messages.ts'
import { hello, WIRE_VERSION } from '../../src/guest/wire/version.ts'
import { dice, seed } from '../faults/random.ts'
import { until } from '../support/until.ts'

const open: { close(): void }[] = []
afterEach(() => {
  for (const each of open.splice(0)) each.close()
})

/** A guest that sends whatever a test wants, to a server that answers names. */
async function connected(answerName: AnswerName, version = WIRE_VERSION) {
  const heard: Buffer[] = []
  const socket = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      heard.push(chunk)
      done()
    },
  })
  socket.push(encodeFrame(kinds.hello, 0, json({ protocol: PROTOCOL, version })))
  const guest = await connectGuest(socket, { answerName })
  open.push(guest)
  guest.answerNames()
  const say = (...messages: Uint8Array[]) => {
    for (const message of messages) socket.push(encodeFrame(kinds.data, 1, Buffer.concat([Uint8Array.of(1), message])))
  }
  return { guest, say, heard: () => Buffer.concat(heard).toString('latin1') }
}

const question = (id: number, bytes: Uint8Array = Buffer.from('question')) =>
  encodeNameMessage({ id, isTcp: false, bytes })

test('a guest’s questions are answered, and the call for them is no use of the sandbox', async () => {
  const { guest, say, heard } = await connected(async (message, transport) =>
    Buffer.from(`${transport} ${message.length}`),
  )
  say(encodeNameMessage({ id: 7, isTcp: true, bytes: Buffer.from('abc') }), question(8))
  await until(() => heard().includes('udp 8'))
  expect(heard()).toContain('tcp 3')
  expect(guest.activeCalls).toBe(0)
})

test('a guest of an earlier version is not asked for what it does not know', async () => {
  const { guest, heard } = await connected(async () => undefined, 1)
  const made = guest.files.makeDirectory('/x')
  made.catch(() => {})
  await until(() => heard().includes('mkdir'))
  expect(heard()).not.toContain('names')
})

test('a message longer than a question ends that call alone: regression', async () => {
  let asked = 0
  const { guest, say, heard } = await connected(async () => {
    asked++
    return undefined
  })
  const long = Buffer.from(question(1))
  long.writeUInt32BE(MAX_QUESTION_BYTES + 1, 0)
  say(long)
  await until(() => heard().includes('{}'))
  say(question(2))
  const made = guest.files.makeDirectory('/x')
  made.catch(() => {})
  await until(() => heard().includes('mkdir'))
  expect(asked).toBe(0)
})

test('questions at once are bounded, and the others wait in the guest: regression', async () => {
  let asked = 0
  const hanging = Promise.withResolvers<undefined>()
  const { say } = await connected(() => {
    asked++
    return hanging.promise
  })
  const many = Buffer.concat(Array.from({ length: 1000 }, (_, id) => question(id)))
  for (let offset = 0; offset < many.byteLength; offset += 8000) say(many.subarray(offset, offset + 8000))
  await until(() => asked >= 64)
  for (let turn = 0; turn < 20; turn++) await new Promise<void>(resolve => setImmediate(resolve))
  expect(asked).toBe(64)
  hanging.resolve(undefined)
  await until(() => asked === 1000)
})

test('a guest that reads no answers holds a bounded number of them: regression', async () => {
  let asked = 0
  const { say } = await connected(async () => {
    asked++
    return Buffer.alloc(60_000)
  })
  for (let id = 0; id < 2000; id++) say(question(id))
  await until(() => asked >= 64)
  for (let turn = 0; turn < 200; turn++) await new Promise<void>(resolve => setImmediate(resolve))
  // What the window takes, and those that wait for it.
  expect(asked).toBeLessThan(80)
})

test('an answerer that fails leaves its question without an answer, and others go on', async () => {
  const { say, heard } = await connected(async message => {
    if (message.length === 1) throw new Error('broken')
    return Buffer.from('fine')
  })
  say(question(1, Buffer.from('x')), question(2))
  await until(() => heard().includes('fine'))
})

test('messages are the same however their bytes are cut', () => {
  const roll = dice(seed)
  const messages = Array.from({ length: 50 }, (_, id) => ({
    id,
    isTcp: id % 2 === 0,
    bytes: Buffer.alloc(roll(300) - 1, id),
  }))
  const bytes = Buffer.concat(messages.map(encodeNameMessage))
  const decode = createNameDecoder(MAX_QUESTION_BYTES)
  const read: ReturnType<typeof decode> = []
  for (let offset = 0, size = 0; offset < bytes.byteLength; offset += size) {
    size = roll(40)
    read.push(
      ...decode(bytes.subarray(offset, offset + size)).map(each => ({ ...each, bytes: Buffer.from(each.bytes) })),
    )
  }
  expect(read).toEqual(messages)
})

test('a resolver inside fails at once what no server answers, and what one that goes has not answered', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const side = (other: () => Duplex) =>
    new Duplex({
      read() {},
      write(chunk, _encoding, done) {
        other().push(chunk)
        done()
      },
    })
  const guestSide: Duplex = side(() => serverSide)
  const serverSide: Duplex = side(() => guestSide)
  let ask: OnMessage = () => {}
  const gate = createNameGate(onMessage => {
    ask = onMessage
  })
  gate.listen()
  const channel = new Channel(guestSide, {
    side: 'guest',
    onOpen: call => void gate.serve(call).catch(() => end()),
  })
  channel.sendHello(hello(PROTOCOL))
  const message = Buffer.from('123401000001000000000000016100000100', 'hex')
  const failure = `${message.toString('hex', 0, 2)}8182${message.toString('hex', 4)}`
  const answers: string[] = []
  const reply = (answer: Uint8Array) => void answers.push(Buffer.from(answer).toString('hex'))
  ask(message, 'udp', reply)
  expect(answers).toEqual([failure])

  let heard = 0
  const guest = await connectGuest(serverSide, {
    answerName: () => {
      heard++
      return heard === 1 ? Promise.resolve(Buffer.from('answer')) : new Promise(() => {})
    },
  })
  open.push(guest)
  guest.answerNames()
  await until(() => {
    if (heard === 0) ask(message, 'udp', reply)
    return answers.at(-1) === Buffer.from('answer').toString('hex')
  })
  answers.length = 0
  ask(message, 'udp', reply)
  await until(() => heard === 2)
  guest.close()
  channel.close()
  await ended
  expect(answers).toEqual([failure])
})

test('a program that cannot be answered does not end the answers to all others: regression', async () => {
  const side = (other: () => Duplex) =>
    new Duplex({
      read() {},
      write(chunk, _encoding, done) {
        other().push(chunk)
        done()
      },
    })
  const guestSide: Duplex = side(() => serverSide)
  const serverSide: Duplex = side(() => guestSide)
  let ask: OnMessage = () => {}
  const gate = createNameGate(onMessage => {
    ask = onMessage
  })
  gate.listen()
  const channel = new Channel(guestSide, { side: 'guest', onOpen: call => void gate.serve(call).catch(() => {}) })
  channel.sendHello(hello(PROTOCOL))
  const guest = await connectGuest(serverSide, { answerName: async () => Buffer.from('answer') })
  open.push(guest)
  guest.answerNames()
  const message = Buffer.from('123401000001000000000000016100000100', 'hex')
  const answers: string[] = []
  const reply = (answer: Uint8Array) => void answers.push(Buffer.from(answer).toString())
  const isAnswered = () => {
    ask(message, 'udp', reply)
    return answers.at(-1) === 'answer'
  }
  await until(isAnswered)
  let failures = 0
  ask(message, 'udp', () => {
    failures++
    throw new Error('EPERM')
  })
  await until(() => failures > 0)
  answers.length = 0
  await until(isAnswered)
})
