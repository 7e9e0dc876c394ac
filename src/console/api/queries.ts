import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { RequestError } from './client.ts'

const RETRIES = 2

/** Everything that the page has asked for. A refusal is shown at once; a lost connection is tried again. */
export function createQueries(): QueryClient {
  // The session has ended: the page finds out and asks for a key.
  const onError = (error: Error) => {
    if (!(error instanceof RequestError) || error.status !== 401) return
    const session = { queryKey: ['session'] }
    if (queries.getQueryState(session.queryKey)?.status === 'success') void queries.invalidateQueries(session)
  }
  const queries = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: 2000,
        retry: (count, error) => !(error instanceof RequestError && error.status < 500) && count < RETRIES,
      },
    },
  })
  return queries
}
