import { useInfiniteQuery } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo } from 'react'
import { api, type Schemas, take } from '../api/client.ts'
import { type TeamEvent, useEachEvent } from '../api/team-events.ts'

export type RunEvent = Schemas['RunEventPage']['events'][number]

const PAGE = '999'
/** The first read ends here. The rest of a longer run is read when the list comes near its end. */
const READ_AT_ONCE = { events: 20_000, characters: 20_000_000 }

/** A run that goes on is asked for more events this often: the team's events do not tell of them. */
const LOOK_MS = 5000

/** Reads the events of a run, page after page, and the new ones of a run that goes on. */
export function useRunEvents(runId: string, isActive: boolean) {
  const pages = useInfiniteQuery({
    queryKey: ['run-events', runId],
    queryFn: async ({ pageParam }) => {
      const query = { limit: PAGE, after: String(pageParam) }
      const page = await take(api.GET('/v1/runs/{runId}/events', { params: { path: { runId }, query } }))
      return { ...page, characters: JSON.stringify(page.events).length }
    },
    initialPageParam: 0,
    getNextPageParam: ({ nextAfter }) => nextAfter ?? undefined,
    staleTime: Number.POSITIVE_INFINITY,
  })
  const { data, hasNextPage, isFetching, isError, fetchNextPage } = pages
  const events = useMemo(() => data?.pages.flatMap(page => page.events) ?? [], [data])
  const canRead = hasNextPage && !isFetching && !isError
  const waits = isActive && (data?.pages.at(-1)?.events.length ?? 0) < Number(PAGE)
  const characters = data?.pages.reduce((sum, page) => sum + page.characters, 0) ?? 0
  const isShort = events.length < READ_AT_ONCE.events && characters < READ_AT_ONCE.characters
  useEffect(() => {
    if (canRead && isShort && !waits) void fetchNextPage()
  }, [canRead, isShort, waits, fetchNextPage])
  useEffect(() => {
    if (!canRead || !waits) return
    const look = () => {
      if (document.visibilityState === 'visible') void fetchNextPage()
    }
    const timer = setInterval(look, LOOK_MS)
    return () => clearInterval(timer)
  }, [canRead, waits, fetchNextPage])
  const readOn = useCallback(
    (event: TeamEvent) => {
      if (event.runId === runId && canRead) void fetchNextPage()
    },
    [runId, canRead, fetchNextPage],
  )
  useEachEvent(readOn)
  const more = canRead && !waits ? () => void fetchNextPage() : undefined
  return { events, more, isRead: pages.isSuccess, error: pages.error, refetch: pages.refetch }
}

/**
 * Returns when each event came, in milliseconds after the first. Without times, the events come one after the other at a fixed distance.
 */
export function offsetsOf(events: readonly RunEvent[]): number[] {
  const first = Date.parse(events[0]?.at ?? '')
  let last = 0
  return events.map(({ at }, index) => {
    const offset = at === null || Number.isNaN(first) ? index * UNKNOWN_MS : Date.parse(at) - first
    // A clock may have been set back.
    last = Math.max(last, offset)
    return last
  })
}

const UNKNOWN_MS = 50
