import { useQuery } from '@tanstack/react-query'
import { api, take } from '../api/client.ts'
import type { ThreadPlace } from './place.ts'

/** How many messages are read at first; those before come when they are asked for. */
export const PAGE = 100

/** A thread and its newest messages. */
export function useThread({ sandboxId, threadId }: ThreadPlace) {
  return useQuery({
    queryKey: ['thread', threadId],
    queryFn: () =>
      take(
        api.GET('/v1/sandboxes/{sandboxId}/threads/{threadId}', {
          params: { path: { sandboxId, threadId }, query: { limit: String(PAGE) } },
        }),
      ),
  })
}

/** The messages before one of them, oldest first. */
export const readEarlier = ({ sandboxId, threadId }: ThreadPlace, before: string) =>
  take(
    api.GET('/v1/sandboxes/{sandboxId}/threads/{threadId}/messages', {
      params: { path: { sandboxId, threadId }, query: { limit: String(PAGE), before } },
    }),
  )
