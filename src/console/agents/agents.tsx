import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, take } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { Time } from '../parts/time.tsx'

/** The team's agents. */
export default function AgentList() {
  const list = useQuery({ queryKey: ['agents'], queryFn: () => take(api.GET('/v1/agents')) })
  const agents = list.data?.agents ?? []
  return (
    <section className="stack">
      <h1>Agents</h1>
      {list.error && <Problem error={list.error} retry={() => void list.refetch()} />}
      {list.isSuccess && agents.length === 0 && (
        <Empty title="No agents yet">threadbox agents apply makes one from a file, agents deploy from code.</Empty>
      )}
      {agents.length > 0 && (
        <ul className="plain card" aria-label="Agents">
          {agents.map(({ slug, name, runtime, activeVersion, updatedAt }) => (
            <li key={slug}>
              <Link href={`/agents/${slug}`} className="item">
                <span className="grow">
                  <strong className="cut block">{name}</strong>
                  <span className="hint">{slug}</span>
                </span>
                <span className="hint">{runtime}</span>
                {activeVersion !== null && <span className="badge">version {activeVersion}</span>}
                <span className="hint">
                  <Time at={updatedAt} />
                </span>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
