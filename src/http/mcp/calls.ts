/** Calls that go on, so that a later request can cancel them. A session without calls takes no memory. */
export interface Calls {
  /** Begins a call. It ends when the result is disposed of, or when it is cancelled. */
  begin(name: CallName, cancel: () => void): Disposable
  /** Cancels a call. A call that has ended is ignored. */
  cancel(name: CallName): void
  cancelAll(session: Session): void
  /** How many sessions have open calls. */
  readonly sessions: number
}

/** Identifies a session. Sessions of two callers differ even when their ids are equal. */
export interface Session {
  caller: string
  /** Undefined when the client keeps no session, and cancels a call by closing its request. */
  sessionId: string | undefined
}

export interface CallName extends Session {
  /** The client's own number of its request. */
  id: string | number
}

export function createCalls(): Calls {
  const sessions = new Map<string, Map<string | number, () => void>>()
  return {
    begin({ id, ...session }, cancel) {
      const key = keyOf(session)
      if (key === undefined) return { [Symbol.dispose]() {} }
      const calls = sessions.get(key) ?? new Map<string | number, () => void>()
      sessions.set(key, calls)
      calls.set(id, cancel)
      return {
        [Symbol.dispose]() {
          // When a client uses a number twice, the number means the newer call.
          if (calls.get(id) === cancel) calls.delete(id)
          if (calls.size === 0 && sessions.get(key) === calls) sessions.delete(key)
        },
      }
    },
    get sessions() {
      return sessions.size
    },
    cancel: ({ id, ...session }) => sessions.get(keyOf(session) ?? '')?.get(id)?.(),
    cancelAll(session) {
      for (const cancel of [...(sessions.get(keyOf(session) ?? '')?.values() ?? [])]) cancel()
    },
  }
}

const keyOf = ({ caller, sessionId }: Session) =>
  sessionId === undefined ? undefined : JSON.stringify([caller, sessionId])
