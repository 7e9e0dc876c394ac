import type { Conversation } from './conversation.ts'

/** Conversations that wait for the next turn of their thread, their program running. */
export interface Shelf {
  /** The thread's, if its program lives. It is the caller's then. */
  take(threadId: string): ShelvedConversation | undefined
  /** Ends it when nobody takes it for a while. */
  put(threadId: string, conversation: ShelvedConversation): void
  /** When it resolves, nothing that was kept is alive. */
  close(): Promise<void>
}

export interface ShelvedConversation extends Conversation {
  readonly environmentId: string
  readonly key: string
}

/** Of one sandbox: each is a process of some hundred megabytes. */
const MAX_KEPT = 3

export function createShelf(idleMs: number): Shelf {
  const kept = new Map<string, { conversation: ShelvedConversation; timer: ReturnType<typeof setTimeout> }>()
  const ending = new Set<Promise<void>>()

  function take(threadId: string): ShelvedConversation | undefined {
    const found = kept.get(threadId)
    if (!found) return undefined
    clearTimeout(found.timer)
    kept.delete(threadId)
    return found.conversation.program.isAlive ? found.conversation : undefined
  }

  function end(threadId: string): void {
    const ended = take(threadId)?.program.end()
    if (!ended) return
    ending.add(ended)
    void ended.then(() => ending.delete(ended))
  }

  return {
    take,
    put(threadId, conversation) {
      const { program, environmentId } = conversation
      if (!program.isAlive) return
      // A turn that was late to end may have put one there.
      end(threadId)
      const timer = setTimeout(() => end(threadId), idleMs)
      timer.unref()
      kept.set(threadId, { conversation, timer })
      void program.ended.then(() => {
        if (kept.get(threadId)?.conversation === conversation) take(threadId)
      })
      // The oldest are first.
      const beside = [...kept].filter(([, { conversation: other }]) => other.environmentId === environmentId)
      for (const [id] of beside.slice(0, -MAX_KEPT)) end(id)
    },
    async close() {
      for (const threadId of [...kept.keys()]) end(threadId)
      await Promise.all(ending)
    },
  }
}
