import type { AuditFact } from '../../model/audit.ts'
import type { Observation } from '../../model/observation.ts'

type RequestEnded = Extract<Observation, { type: 'request.ended' }>

const MINUTE_MS = 60_000
/** How many keys with their addresses, and how many kinds of refusals, are remembered for a minute. */
const MAX_SEEN = 10_000

/** Methods that change nothing: only the use of their key is recorded. */
const reads = ['GET', 'HEAD', 'OPTIONS']
/** Routes whose requests have no row of their own: a sandbox's program answers them, or they act by further requests. */
const isPassedOn = (route: string) => route.startsWith('/v1/sandboxes/:sandboxId/ports/') || route === '/v1/mcp'

/**
 * Makes rows of requests: the first use of a key from an address in each minute, and every change that has no other row. Refusals
 * of one kind by one key get a row for the first in a minute and a row that counts the rest, so that refusals cannot fill the
 * disk.
 */
export interface RequestRows {
  /** `isKept` says that the request has rows already, which tell what it did. */
  ended(request: RequestEnded, isKept: boolean): void
  close(): void
}

/** A key's refusals that have the same answer. */
interface Refusals {
  row: AuditFact
  more: number
}

export function createRequestRows(record: (row: AuditFact) => void): RequestRows {
  let seen = new Set<string>()
  let refusals = new Map<string, Refusals>()
  let timer: Timer | undefined

  const end = () => {
    clearTimeout(timer)
    timer = undefined
    for (const { row, more } of refusals.values()) {
      if (more > 0) record({ ...row, action: 'request.more', outcome: 'counted', detail: { ...row.detail, more } })
    }
    seen = new Set()
    refusals = new Map()
  }
  const isFirst = (user: string): boolean => {
    if (seen.has(user)) return false
    if (seen.size < MAX_SEEN) seen.add(user)
    return true
  }
  /** Returns false for a refusal that is only counted. */
  const isFirstRefusal = ({ teamId, cause: { keyId, sessionId }, method, route, status }: RequestEnded): boolean => {
    const kind = JSON.stringify([teamId, keyId, sessionId, method, route, status])
    const known = refusals.get(kind)
    if (known) known.more++
    else if (refusals.size < MAX_SEEN) {
      const actor = { ...(keyId !== undefined && { keyId }), ...(sessionId !== undefined && { sessionId }) }
      const detail = { method, route, status }
      const row = { ...(teamId !== undefined && { teamId }), actor, action: '', target: {}, outcome: '', detail }
      refusals.set(kind, { row, more: 0 })
    }
    return !known
  }

  return {
    ended(request, isKept) {
      const { time, teamId, cause, method, route, status, sandboxId } = request
      // A request without a caller did nothing, and the operator's log has its refusal.
      if (teamId === undefined) return
      timer ??= setTimeout(end, MINUTE_MS).unref()
      const row = { time, teamId, actor: { ...cause }, target: sandboxId === undefined ? {} : { sandboxId } }
      const { keyId, sessionId, address } = cause
      if (isFirst(JSON.stringify([teamId, keyId, sessionId, address])))
        record({ ...row, action: 'key.used', outcome: 'done' })
      if (isKept || reads.includes(method) || isPassedOn(route)) return
      if (status >= 400 && status < 500 && !isFirstRefusal(request)) return
      const outcome = status < 400 ? 'done' : 'refused'
      record({ ...row, action: 'request', outcome, detail: { method, route, status } })
    },
    close: end,
  }
}
