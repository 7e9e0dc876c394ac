import { type Call, lanes } from '../wire/call.ts'
import {
  createNameDecoder,
  encodeNameMessage,
  MAX_ANSWER_BYTES,
  MAX_QUESTION_BYTES,
  MAX_QUESTIONS,
} from '../wire/name-messages.ts'
import { listenForNames, type NameTransport, type OnMessage, type Reply } from './name-listener.ts'

/** Connects programs that ask for names with the servers that are connected. */
export interface NameGate {
  /** Listens where programs look for a resolver. Where that is not possible they find none. A second call changes nothing. */
  listen(): void
  /** Sends programs' questions through a server's call until the call ends. The newest open call gets new questions. */
  serve(call: Call): Promise<void>
}

interface Server {
  ask(message: Uint8Array, transport: NameTransport, reply: Reply): boolean
}

/** Makes the gate, which does not listen yet. A look-up that no server would answer fails at once. */
export function createNameGate(listen: (onMessage: OnMessage) => void = listenForNames): NameGate {
  const servers: Server[] = []
  return {
    listen: () =>
      listen((message, transport, reply) => {
        if (message.byteLength < HEADER_BYTES || message.byteLength > MAX_QUESTION_BYTES) return
        if (!servers.at(-1)?.ask(message, transport, reply)) tryReply(reply, failureOf(message))
      }),
    async serve(call) {
      const server = createServer(call)
      servers.push(server)
      try {
        await server.ended
      } finally {
        servers.splice(servers.indexOf(server), 1)
        server.fail()
      }
    },
  }
}

interface Asked {
  message: Uint8Array
  reply: Reply
}

/** The questions that one server has. */
function createServer(call: Call): Server & { ended: Promise<void>; fail(): void } {
  const asked = new Map<number, Asked>()
  let nextId = 0
  /** The bytes that wait while the server takes no more. */
  let sending = Promise.resolve()
  const read = async () => {
    const decode = createNameDecoder(MAX_ANSWER_BYTES)
    for (let chunk = await call.read(lanes.up); chunk; chunk = await call.read(lanes.up)) {
      for (const { id, bytes } of decode(chunk)) {
        const question = asked.get(id)
        asked.delete(id)
        if (bytes.byteLength > 0 && question) tryReply(question.reply, bytes)
      }
    }
  }
  return {
    ended: read(),
    ask(message, transport, reply) {
      if (asked.size >= MAX_QUESTIONS || call.isOver) return false
      nextId = (nextId + 1) >>> 0
      const id = nextId
      asked.set(id, { message, reply })
      const encoded = encodeNameMessage({ id, isTcp: transport === 'tcp', bytes: message })
      sending = sending.then(() => call.send(lanes.down, encoded))
      return true
    },
    fail() {
      for (const { message, reply } of asked.values()) tryReply(reply, failureOf(message))
      asked.clear()
    },
  }
}

/** A failure to reach one program must not end the answers to all others. */
function tryReply(reply: Reply, answer: Uint8Array): void {
  try {
    reply(answer)
  } catch {
    // The kernel refuses the datagram: the program's port is not valid, or there is no room.
  }
}

const HEADER_BYTES = 12
const IS_ANSWER = 0x80
const RECURSION_AVAILABLE = 0x80
const SERVER_FAILURE = 2

/** Makes an answer that says the look-up failed, so that the program need not wait until its time is up. */
function failureOf(message: Uint8Array): Uint8Array {
  const answer = message.slice()
  answer[2] = (answer[2] ?? 0) | IS_ANSWER
  answer[3] = RECURSION_AVAILABLE | SERVER_FAILURE
  return answer
}
