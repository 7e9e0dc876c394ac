import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, RequestError, type Schemas, take } from '../../api/client.ts'
import type { Draft } from './draft.ts'

/** Makes a version of an agent from a draft. */
export function useSaving(slug: string, draft: Draft, saved: (agent: Schemas['AgentDefinition']) => void) {
  const queries = useQueryClient()
  const queryKey = ['agent', slug, 'definition']
  return useMutation({
    mutationFn: () => {
      const { revision, definition } = draft
      const params = { path: { slug } }
      return take(api.PUT('/v1/agents/{slug}/definition', { params, body: { revision, definition } }))
    },
    onSuccess: agent => {
      queries.setQueryData(queryKey, agent)
      saved(agent)
      return queries.invalidateQueries({ queryKey: ['agent', slug] })
    },
    // Somebody was faster: what they made is read, to be shown.
    onError: error => {
      if (error instanceof RequestError && error.status === 409) void queries.invalidateQueries({ queryKey })
    },
  })
}
