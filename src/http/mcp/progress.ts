import { objectOf } from '../../read/json.ts'
import { isId, type Message } from './messages.ts'

/** Sends a notification before the answer. */
export type Send = (message: object) => void

export interface Progress extends Disposable {
  tell(message: string): void
}

/** How often a client hears of progress. */
const EVERY_MS = 500
/** How often a client hears that a call goes on when there is nothing new: many give up after a minute of silence. */
const ALIVE_MS = 10_000
const MAX_CHARS = 300

/** Reports progress to a client that asked for it: the first message at once, and then the last message of each half second. */
export function createProgress({ params }: Message, send: Send): Progress {
  const progressToken = objectOf(params?._meta)?.progressToken
  if (!isId(progressToken)) return { tell() {}, [Symbol.dispose]() {} }
  const begunAt = Date.now()
  let progress = 0
  let waiting: string | undefined
  let sentAt = 0
  const notify = (message: string) => {
    sentAt = Date.now()
    waiting = undefined
    progress++
    const params = { progressToken, progress, message: message.slice(0, MAX_CHARS).toWellFormed() }
    send({ jsonrpc: '2.0', method: 'notifications/progress', params })
  }
  const timer = setInterval(() => {
    if (waiting !== undefined) notify(waiting)
    else if (Date.now() - sentAt >= ALIVE_MS && Date.now() - begunAt >= ALIVE_MS)
      notify(`${Math.round((Date.now() - begunAt) / 1000)} s`)
  }, EVERY_MS)
  return {
    tell(message) {
      if (Date.now() - sentAt >= EVERY_MS) notify(message)
      else waiting = message
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}
