/** A limit on the cost of model calls, and how much of it is used. */
export interface Budget {
  /** The budgets of `server` and `key` are for the day in UTC, the others for all time. */
  kind: 'server' | 'key' | 'agent' | 'sandbox' | 'thread'
  /**
   * The id of a key, sandbox or thread, or the slug of an agent. Null for the server, and for calls with a key that is not in the
   * database.
   */
  id: string | null
  /**
   * The name of the key, the thread or the agent; for a sandbox, its agent's. Null for the server, and where there is no name.
   */
  name: string | null
  /** The sandbox of a thread. */
  sandboxId: string | null
  /** Includes what people have approved on top of it. */
  limitUsd: number
  spentUsd: number
}
