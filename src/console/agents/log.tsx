import { useQuery } from '@tanstack/react-query'
import { api, take } from '../api/client.ts'
import { Problem } from '../parts/problem.tsx'
import { Time } from '../parts/time.tsx'

/** What the server has noted about the agent: deploys, set-up commands, its tools, its engine. */
export function Log({ slug }: { slug: string }) {
  const log = useQuery({
    queryKey: ['agent', slug, 'log'],
    queryFn: () => take(api.GET('/v1/agents/{slug}/logs', { params: { path: { slug } } })),
  })
  const lines = log.data?.logs ?? []
  return (
    <section className="card stack" aria-labelledby="log">
      <h2 id="log">Log</h2>
      {log.error && <Problem error={log.error} />}
      {log.isSuccess && lines.length === 0 && <p className="hint">Nothing yet.</p>}
      <ul className="plain">
        {lines.map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line of the log has no id
          <li key={index} className="row">
            <span className="hint">{typeof line.at === 'string' && <Time at={line.at} />}</span>
            <span className="badge">{String(line.source ?? '')}</span>
            <span className="grow wrap">{String(line.text ?? '')}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}
