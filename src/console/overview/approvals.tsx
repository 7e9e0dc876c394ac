import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, take } from '../api/client.ts'
import { Time } from '../parts/time.tsx'
import { Tile } from './tile.tsx'

const SHOWN = 3

/** What waits for a person. */
export function Approvals() {
  const { data } = useQuery({
    queryKey: ['approvals', 'pending'],
    queryFn: () => take(api.GET('/v1/approvals', { params: { query: { status: 'pending' } } })),
  })
  const approvals = data?.approvals ?? []
  const figure = data ? `${approvals.length}${data.nextBefore ? '+' : ''}` : '–'
  return (
    <Tile title="Waiting for approval" figure={figure} href="/threads?status=waiting">
      <ul className="plain">
        {approvals.slice(0, SHOWN).map(({ id, agent, tool, sandboxId, threadId, createdAt }) => (
          <li key={id} className="row spread">
            <Link href={`/sandboxes/${sandboxId}/threads/${threadId}`}>
              {agent}: {tool}
            </Link>
            <span className="hint">
              <Time at={createdAt} />
            </span>
          </li>
        ))}
      </ul>
    </Tile>
  )
}
