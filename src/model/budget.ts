/** A limit on what models may cost, and how far it is used. */
export interface Budget {
  /** `server` and `key`: of the day, UTC. Others: of all time. */
  kind: 'server' | 'key' | 'agent' | 'sandbox' | 'thread'
  /** A key's, sandbox's or thread's id, or an agent's slug. Null for the server, and for calls without a key of the database. */
  id: string | null
  /** Of the key, thread or agent, or of a sandbox's agent. Null for the server, and where there is no name. */
  name: string | null
  /** Where a thread is. */
  sandboxId: string | null
  /** Includes what people have approved on top of it. */
  limitUsd: number
  spentUsd: number
}
