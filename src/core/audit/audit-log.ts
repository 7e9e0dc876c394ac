import type { Database } from 'bun:sqlite'
import { appendAudit } from '../../db/audit.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { messageOf } from '../../errors.ts'
import type { AuditActor, AuditFact } from '../../model/audit.ts'
import type { LogLevel } from '../config.ts'

/** How long a row waits for others to share a commit, when no answer waits for the row. */
const SHARE_MS = 10
const RETRY_MS = 1000
/** How many rows may wait while the database accepts none. */
const MAX_WAITING = 10_000
/** For how many unfinished requests it is remembered that they have rows. */
const MAX_KEPT = 10_000

/** Writes one line to the operator's log. */
export type WriteLine = (line: string, level?: LogLevel) => void

/** Keeps what is done on this server, in the chain. */
export interface AuditLog {
  /** Adds a row for a change of the database: call it in its transaction. Throws what the database throws. */
  add(fact: AuditFact): void
  /** Adds a row, for what is done elsewhere, soon. Never throws. */
  record(fact: AuditFact): void
  /** Removes and returns a recorded row that is not written yet, so that a fuller row can replace it. Returns undefined when no such row waits. */
  takeBack(isIt: (fact: AuditFact) => boolean): AuditFact | undefined
  /** Whether a request has added rows since the last call for it. */
  takeKept(requestId: string): boolean
  /**
   * Commits the recorded rows if the database accepts them at once. Otherwise they wait in memory for the next try. Never throws.
   */
  flush(): void
  /** Resolves when every recorded row is committed. Rejects with the reason why the database accepts none. */
  settled(): Promise<void>
  close(): Promise<void>
}

export function createAuditLog(db: Database, log: WriteLine): AuditLog {
  let waiting: AuditFact[] = []
  /** How many rows were dropped because too many waited. */
  let lost = 0
  /** Whether the last try has failed: then `flush` leaves the rows to the next try of `settled`. */
  let isBehind = false
  let isTold = false
  let timer: Timer | undefined

  const write = () => {
    const gap: AuditFact = { actor: {}, action: 'audit.gap', target: {}, outcome: 'failed', detail: { lost } }
    if (waiting.length > 0) appendAudit(db, lost > 0 ? [...waiting, gap] : waiting)
    waiting = []
    lost = 0
  }
  const settled = async () => {
    clearTimeout(timer)
    timer = undefined
    if (waiting.length === 0) return
    try {
      await writeWhenFree(db, write)
      if (isTold) log('audit: rows are stored again', 'info')
      isBehind = isTold = false
    } catch (error) {
      if (!isTold) log(`audit: rows cannot be stored, and wait in memory: ${messageOf(error)}`, 'error')
      isBehind = isTold = true
      settleIn(RETRY_MS)
      throw error
    }
  }
  const settleIn = (ms: number) => {
    // A failure is logged, and the next try comes by itself.
    timer ??= setTimeout(() => void settled().catch(() => {}), ms)
  }

  const kept = new Set<string>()
  const keep = ({ requestId }: AuditActor) => {
    if (requestId === undefined) return
    const [oldest] = kept.size >= MAX_KEPT ? kept : []
    if (oldest !== undefined) kept.delete(oldest)
    kept.add(requestId)
  }

  return {
    add(fact) {
      appendAudit(db, [fact])
      keep(fact.actor)
    },
    takeKept: requestId => kept.delete(requestId),
    record(fact) {
      keep(fact.actor)
      if (waiting.length >= MAX_WAITING) lost++
      else waiting.push(fact)
      settleIn(SHARE_MS)
    },
    takeBack(isIt) {
      const index = waiting.findLastIndex(isIt)
      return index < 0 ? undefined : waiting.splice(index, 1)[0]
    },
    flush() {
      if (isBehind) return
      try {
        write()
      } catch {
        isBehind = true
        // A failure is logged, and the next try comes by itself.
        void settled().catch(() => {})
      }
    },
    settled,
    async close() {
      await settled().catch(() => {})
      clearTimeout(timer)
    },
  }
}
