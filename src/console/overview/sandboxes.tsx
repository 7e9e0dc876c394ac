import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, take } from '../api/client.ts'
import { Time } from '../parts/time.tsx'
import { Tile } from './tile.tsx'

const PAGE = 100
const SHOWN = 3

/** How many sandboxes there are, and the newest. */
export function Sandboxes() {
  const { data } = useQuery({
    queryKey: ['sandboxes', 'newest'],
    queryFn: () => take(api.GET('/v1/sandboxes', { params: { query: { limit: String(PAGE) } } })),
  })
  const sandboxes = data?.sandboxes ?? []
  const figure = data ? `${sandboxes.length}${data.nextBefore ? '+' : ''}` : '–'
  return (
    <Tile title="Sandboxes" figure={figure} href="/sandboxes">
      <ul className="plain">
        {sandboxes.slice(0, SHOWN).map(({ id, agent, createdAt }) => (
          <li key={id} className="row spread">
            <Link href={`/sandboxes/${id}`}>{agent.name}</Link>
            <span className="hint">
              <Time at={createdAt} />
            </span>
          </li>
        ))}
      </ul>
    </Tile>
  )
}
