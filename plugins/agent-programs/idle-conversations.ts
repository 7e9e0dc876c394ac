import type { Answer } from './answer.ts'
import type { Conversation } from './conversation.ts'

/** Conversations that wait for the next turn of their thread. Their programs keep running. */
export interface IdleConversations {
  /** Removes and gives the thread's conversation, if its program is alive. The caller ends it, or puts it back. */
  take(threadId: string): IdleConversation | undefined
  /** Keeps a conversation, and ends it when it is not taken in time. */
  put(threadId: string, conversation: IdleConversation): void
  /** Ends all conversations. When it resolves, none of their programs is alive. */
  close(): Promise<void>
}

export interface IdleConversation extends Conversation {
  readonly environmentId: string
  readonly key: string
  /** What the program is about to answer, when it waits for a person or the client. */
  answer?: Answer
}

/** The most for one sandbox: each is a process of some hundred megabytes. */
const MAX_KEPT = 3

/** @param idleMs how long a conversation waits before it is ended */
export function createIdleConversations(idleMs: number): IdleConversations {
  const kept = new Map<string, { conversation: IdleConversation; timer: ReturnType<typeof setTimeout> }>()
  const ending = new Set<Promise<void>>()

  function take(threadId: string): IdleConversation | undefined {
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
      // An earlier turn of the thread that ended late may have put one there.
      end(threadId)
      const timer = setTimeout(() => end(threadId), idleMs)
      timer.unref()
      kept.set(threadId, { conversation, timer })
      void program.ended.then(() => {
        if (kept.get(threadId)?.conversation === conversation) take(threadId)
      })
      // A map iterates in insertion order: the oldest come first.
      const beside = [...kept].filter(([, { conversation: other }]) => other.environmentId === environmentId)
      for (const [id] of beside.slice(0, -MAX_KEPT)) end(id)
    },
    async close() {
      for (const threadId of [...kept.keys()]) end(threadId)
      await Promise.all(ending)
    },
  }
}
