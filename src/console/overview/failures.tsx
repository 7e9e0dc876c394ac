import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, take } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { Time } from '../parts/time.tsx'

const SHOWN = '5'

/** The runs that failed last, and why. */
export function Failures() {
  const failed = useQuery({
    queryKey: ['runs', 'failed'],
    queryFn: () => take(api.GET('/v1/runs', { params: { query: { status: 'failed', limit: SHOWN } } })),
  })
  const runs = failed.data?.runs ?? []
  return (
    <section className="card stack" aria-labelledby="failures">
      <h2 id="failures">Latest failures</h2>
      {failed.error && <Problem error={failed.error} retry={() => void failed.refetch()} />}
      {failed.isSuccess && runs.length === 0 && <Empty title="No run has failed" />}
      <ul className="plain stack" aria-label="Latest failures">
        {runs.map(({ id, sandboxId, threadId, error, model, startedAt }) => (
          <li key={id}>
            <Link href={`/sandboxes/${sandboxId}/threads/${threadId}/runs/${id}`} className="wrap">
              {error ?? 'It failed without a word.'}
            </Link>
            <p className="hint">
              {model ?? '–'}, <Time at={startedAt} />
            </p>
          </li>
        ))}
      </ul>
    </section>
  )
}
