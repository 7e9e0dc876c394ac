/** Calls that go on, so that a later request can cancel them. Nothing is kept of a session without calls. */
export interface Calls {
  /** Begins a call. It is over when it is disposed of, or cancelled. */
  begin(name: CallName, cancel: () => void): Disposable
  /** Does nothing for a call that is over. */
  cancel(name: CallName): void
  cancelAll(session: Session): void
  /** How many have calls that go on. */
  readonly sessions: number
}

/** Sessions of two callers are two, whatever they are called. */
export interface Session {
  caller: string
  /** Undefined: the client keeps none, and cancels by closing its request. */
  sessionId: string | undefined
}

export interface CallName extends Session {
  /** As the client numbers its requests. */
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
          // A client that gives a number twice means the newer call.
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
