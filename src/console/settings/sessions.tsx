import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, take } from '../api/client.ts'
import { Problem } from '../parts/problem.tsx'
import { Status } from '../parts/status.tsx'
import { Time } from '../parts/time.tsx'

/** Lists the browsers that are signed in for this team. */
export function Sessions() {
  const queries = useQueryClient()
  const sessions = useQuery({ queryKey: ['sessions'], queryFn: () => take(api.GET('/v1/sessions')) })
  const ending = useMutation({
    mutationFn: ({ id, isCurrent }: { id: string; isCurrent: boolean }) =>
      isCurrent
        ? take(api.DELETE('/v1/session'))
        : take(api.DELETE('/v1/sessions/{sessionId}', { params: { path: { sessionId: id } } })),
    onSuccess: (_, { isCurrent }) => queries.invalidateQueries({ queryKey: [isCurrent ? 'session' : 'sessions'] }),
  })
  const problem = sessions.error ?? ending.error
  return (
    <div className="stack">
      {problem && <Problem error={problem} />}
      <ul className="plain card">
        {sessions.data?.sessions.map(({ id, browser, createdAt, expiresAt, isCurrent }) => (
          <li key={id} className="item">
            <div className="grow">
              <p className="row">
                {describe(browser)} {isCurrent && <Status of="active" label="this browser" />}
              </p>
              <p className="hint">
                signed in <Time at={createdAt} />, ends <Time at={expiresAt} />
              </p>
            </div>
            <button type="button" disabled={ending.isPending} onClick={() => ending.mutate({ id, isCurrent })}>
              Sign out
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}

/** Shortens a browser's own name for itself. */
function describe(browser: string): string {
  const name = /(Firefox|Edg|OPR|Chrome|Safari)\/[\d.]+/.exec(browser)?.[0]
  const system = /\(([^;)]+)/.exec(browser)?.[1]
  return name ? `${name}${system ? ` on ${system}` : ''}` : browser || 'An unknown browser'
}
