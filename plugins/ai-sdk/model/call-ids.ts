import type { AssistantModelMessage } from 'ai'

/** Tool call ids that are unique in a thread. Those of some providers start again with every answer. */
export interface CallIds {
  /** Ids that the provider gives from here on belong to a new answer. */
  beginAnswer(): void
  /** Our id for a call of this answer. */
  toOwn(providerId: string): string
  /** The answer's message with our ids. */
  rename(message: AssistantModelMessage): AssistantModelMessage
}

export function createCallIds(taken: Iterable<string>): CallIds {
  const used = new Set(taken)
  let answer = new Map<string, string>()

  function toOwn(providerId: string): string {
    const known = answer.get(providerId)
    if (known !== undefined) return known
    const base = cleanCallId(providerId).slice(0, 56)
    let id = base
    for (let count = 2; used.has(id); count++) id = `${base}-${count}`
    used.add(id)
    answer.set(providerId, id)
    return id
  }

  return {
    beginAnswer() {
      answer = new Map()
    },
    toOwn,
    rename: message =>
      typeof message.content === 'string'
        ? message
        : {
            ...message,
            content: message.content.map(part =>
              part.type === 'tool-call' ? { ...part, toolCallId: toOwn(part.toolCallId) } : part,
            ),
          },
  }
}

/** Keeps the characters that every provider takes in an id: the call may be another provider's. */
export const cleanCallId = (id: string): string => id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'call'
