import type { JsonObject } from '../../../src/read/json.ts'

/** How far the program is with what it was given during an answer. */
export interface Steered {
  /** Keeps a message. Returns the id by which the program tells of it. */
  add(messageId: string): string
  /** Reads what the program tells of its commands. Gives the id of a message that it takes now. */
  read(message: JsonObject): string | undefined
  /** True while there is one that it has not taken. */
  readonly isWaiting: boolean
}

export function createSteered(): Steered {
  /** The ids of messages that the program has not taken, by its own ids for them. */
  const waiting = new Map<string, string>()
  return {
    add(messageId) {
      const uuid = crypto.randomUUID()
      waiting.set(uuid, messageId)
      return uuid
    },
    read({ type, state, command_uuid: uuid }) {
      if (type !== 'command_lifecycle' || state === 'queued') return undefined
      const messageId = waiting.get(String(uuid))
      waiting.delete(String(uuid))
      // One that it drops stays with the server.
      return state === 'started' ? messageId : undefined
    },
    get isWaiting() {
      return waiting.size > 0
    },
  }
}
