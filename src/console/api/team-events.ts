import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { isOfDeleted } from './deleting.ts'

/** An event of `GET /v1/events`. */
export interface TeamEvent {
  type: string
  sandboxId?: string
  threadId?: string
  runId?: string
  agent?: string
  status?: string
  createdAt?: string
}

/** The lists that an event makes outdated, by the first word of a query's key. */
const affected: readonly [prefix: string, keys: readonly string[]][] = [
  ['sandbox.', ['sandboxes', 'sandbox', 'overview']],
  ['thread.', ['threads', 'thread', 'sandbox']],
  ['run.', ['runs', 'threads', 'usage', 'budgets', 'overview']],
  ['approval.', ['approvals', 'overview']],
  ['agent.', ['agents', 'agent']],
  ['process.', ['processes']],
  ['budget.', ['budgets', 'usage']],
  ['events.lost', []],
]

/** How long events are gathered before lists are read again. */
const GATHER_MS = 150

/** Keeps everything that is on the screen as it is on the server, by one stream of events. */
export function useTeamEvents(): void {
  const queries = useQueryClient()
  useEffect(() => {
    const invalidate = gathering(queries)
    const tell = (event: TeamEvent) => {
      invalidate(event)
      for (const listener of listeners) listener(event)
    }
    return followWhileSeen(tell, () => void queries.invalidateQueries({ queryKey: ['session'] }))
  }, [queries])
}

/** How long after a refusal the next try comes, as for a proxy whose server restarts. */
const RETRY_MS = 3000

/**
 * Follows the events while the page is seen: a browser has six connections to a host for all its tabs. What a hidden page has
 * missed it reads when it is seen again. `refused` is called when the server answers, and with no stream.
 */
function followWhileSeen(tell: (event: TeamEvent) => void, refused: () => void): () => void {
  let source: EventSource | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  const disconnect = () => {
    clearTimeout(timer)
    source?.close()
    source = undefined
  }
  const connect = () => {
    disconnect()
    source = new EventSource('/v1/events')
    source.onmessage = ({ data }) => tell(JSON.parse(data))
    // The browser connects again by itself after a loss, with the last event's id, but never after a refusal.
    source.onerror = ({ target }) => {
      if (target !== source || source?.readyState !== EventSource.CLOSED) return
      refused()
      timer = setTimeout(resume, RETRY_MS)
    }
  }
  const resume = () => {
    connect()
    tell({ type: 'events.lost' })
  }
  const change = () => {
    if (document.visibilityState === 'hidden') disconnect()
    else if (!source) resume()
  }
  if (document.visibilityState !== 'hidden') connect()
  document.addEventListener('visibilitychange', change)
  return () => {
    document.removeEventListener('visibilitychange', change)
    disconnect()
  }
}

const listeners = new Set<(event: TeamEvent) => void>()

/** Calls `listener` with each event, for a page that does more than read its lists again. */
export function useEachEvent(listener: (event: TeamEvent) => void): void {
  useEffect(() => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }, [listener])
}

function gathering(queries: QueryClient) {
  let keys = new Set<string>()
  let all = false
  let isWaiting = false
  const flush = async () => {
    const [isAll, gathered] = [all, keys]
    keys = new Set()
    all = false
    // A query that is running is not started again: on a busy server it would never finish.
    const predicate = ({ queryKey }: { queryKey: readonly unknown[] }) =>
      (isAll || gathered.has(String(queryKey[0]))) && !isOfDeleted(queryKey)
    await queries.invalidateQueries({ predicate })
  }
  const wait = async () => {
    isWaiting = true
    while (all || keys.size > 0) {
      await new Promise(resolve => setTimeout(resolve, GATHER_MS))
      await flush()
    }
    isWaiting = false
  }
  return ({ type }: TeamEvent) => {
    if (type === 'events.lost') all = true
    for (const [prefix, names] of affected) if (type.startsWith(prefix)) for (const name of names) keys.add(name)
    if (!isWaiting) void wait()
  }
}
