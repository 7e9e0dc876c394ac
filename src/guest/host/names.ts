import { type Call, lanes } from '../wire/call.ts'
import { createNameDecoder, encodeNameMessage, MAX_QUESTION_BYTES, type NameMessage } from '../wire/name-messages.ts'
import type { AnswerName } from './outlets.ts'

/** How many look-ups of one sandbox are answered at once; the others wait in the guest. */
const MAX_AT_ONCE = 64

/** Answers the DNS messages that a guest sends in a call, until the call ends. Ends the call when a message is not valid. Never rejects. */
export async function serveNames(call: Call, answerName: AnswerName): Promise<void> {
  const decode = createNameDecoder(MAX_QUESTION_BYTES)
  let running = 0
  let hasRoom = () => {}
  /** Answers are written one after the other: two that wait for the guest to read would be mixed. */
  let sent = Promise.resolve()

  const answer = async ({ id, isTcp, bytes }: NameMessage) => {
    const answered = await answerName(bytes, isTcp ? 'tcp' : 'udp')
    // An answer without bytes means that the program gets none, and that the guest may forget the question.
    const message = encodeNameMessage({ id, isTcp, bytes: answered ?? new Uint8Array() })
    sent = sent.then(() => call.send(lanes.up, message))
    await sent
  }
  const start = async (message: NameMessage) => {
    while (running >= MAX_AT_ONCE) await new Promise<void>(resolve => (hasRoom = resolve))
    running++
    void answer(message)
      .catch(() => {})
      .finally(() => {
        running--
        hasRoom()
      })
  }

  try {
    for (let chunk = await call.read(lanes.down); chunk; chunk = await call.read(lanes.down)) {
      for (const message of decode(chunk)) await start(message)
    }
  } catch {
    // The guest is gone, or has sent something that is not a message.
  } finally {
    call.close()
  }
}
