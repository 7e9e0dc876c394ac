import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { api, take } from '../api/client.ts'
import { type Isolation, isolations } from '../api/create-sandbox.ts'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { CreatingView } from './creating.tsx'
import './new-chat.css'
import { useBeginning } from './use-beginning.ts'

/** How many sandboxes are offered to continue in. */
const OFFERED = '50'

/** Begins a conversation: one click on an agent, in a new sandbox or in one that is there. */
export default function NewChat() {
  const [search] = useSearchParams()
  const [sandboxId, setSandboxId] = useState(search.get('sandbox') ?? '')
  const [isolation, setIsolation] = useState<Isolation>()
  const agents = useQuery({ queryKey: ['agents'], queryFn: () => take(api.GET('/v1/agents')) })
  const sandboxes = useQuery({
    queryKey: ['sandboxes', 'offered'],
    queryFn: () => take(api.GET('/v1/sandboxes', { params: { query: { limit: OFFERED } } })),
  })
  const chosen = sandboxes.data?.sandboxes.find(({ id }) => id === sandboxId)
  const beginning = useBeginning()
  const problem = agents.error ?? beginning.problem
  const offered = agents.data?.agents.filter(({ slug }) => !chosen || chosen.agent.slug === slug) ?? []
  return (
    <section className="stack">
      <h1>New chat</h1>
      <label className="field">
        <span>Where</span>
        <select value={sandboxId} onChange={event => setSandboxId(event.target.value)}>
          <option value="">In a new sandbox</option>
          {sandboxes.data?.sandboxes.map(({ id, agent }) => (
            <option key={id} value={id}>
              {agent.name}, {id}
            </option>
          ))}
        </select>
      </label>
      {!chosen && (
        <label className="field">
          <span>Isolation, at least</span>
          <select
            value={isolation ?? ''}
            onChange={({ target: { value } }) => setIsolation(isolations.find(each => each === value))}
          >
            <option value="">As the agent says</option>
            {isolations.map(each => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      )}
      {problem && <Problem error={problem} />}
      {beginning.isCreating && <CreatingView {...beginning} />}
      {agents.isSuccess && offered.length === 0 && (
        <Empty title="No agents yet">threadbox agents apply makes one from a file.</Empty>
      )}
      <ul className="plain agents" aria-label="Agents">
        {offered.map(({ slug, name, runtime }) => (
          <li key={slug}>
            <button
              type="button"
              className="card choice"
              disabled={beginning.isPending}
              onClick={() =>
                beginning.begin({ agent: slug, ...(chosen ? { sandboxId: chosen.id } : isolation && { isolation }) })
              }
            >
              <strong>{name}</strong>
              <span className="hint">{runtime}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}
