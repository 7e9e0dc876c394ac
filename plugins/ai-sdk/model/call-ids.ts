import type { AssistantModelMessage } from 'ai'

/** Tool call ids that are used once in a thread, whatever the provider gives: some begin anew with every answer. */
export interface CallIds {
  /** What the provider calls its calls from here on is of a new answer. */
  beginAnswer(): void
  /** Our id of a call of this answer. */
  of(providerId: string): string
  /** The answer's message with our ids. */
  rename(message: AssistantModelMessage): AssistantModelMessage
}

export function createCallIds(taken: Iterable<string>): CallIds {
  const used = new Set(taken)
  let answer = new Map<string, string>()

  function of(providerId: string): string {
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
    of,
    rename: message =>
      typeof message.content === 'string'
        ? message
        : {
            ...message,
            content: message.content.map(part =>
              part.type === 'tool-call' ? { ...part, toolCallId: of(part.toolCallId) } : part,
            ),
          },
  }
}

/** The characters that every provider takes in an id, also of calls that another provider's model has made. */
export const cleanCallId = (id: string): string => id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'call'
