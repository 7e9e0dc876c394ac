import { useQuery } from '@tanstack/react-query'
import { api, type Schemas, take } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { Scroll } from '../parts/scroll.tsx'
import { Status } from '../parts/status.tsx'
import { Time } from '../parts/time.tsx'

/** Decisions send no event, so that the visible page reads them again this often. */
const LOOK_MS = 5000

export interface DecisionsProps {
  sandboxId: string
  /** The rules that apply now. */
  network: Pick<Schemas['Network'], 'allowOut' | 'denyOut'>
  /** Allows a target from now on. */
  allow: (rule: string) => void
}

/** Shows what programs inside were allowed and refused, and why. */
export function Decisions({ sandboxId, network, allow }: DecisionsProps) {
  const list = useQuery({
    queryKey: ['decisions', sandboxId],
    queryFn: () => take(api.GET('/v1/sandboxes/{sandboxId}/network/decisions', { params: { path: { sandboxId } } })),
    refetchInterval: LOOK_MS,
  })
  const decisions = list.data?.decisions ?? []
  if (list.error) return <Problem error={list.error} retry={() => void list.refetch()} />
  if (list.isSuccess && decisions.length === 0)
    return <Empty title="Nothing was decided yet">Each connection that a program inside tries is listed here.</Empty>
  return (
    <Scroll label="Decisions" className="card">
      <table>
        <thead>
          <tr>
            <th scope="col">Target</th>
            <th scope="col">Decision</th>
            <th scope="col">Why</th>
            <th scope="col" className="number">
              Times
            </th>
            <th scope="col">Last</th>
            <th scope="col">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {decisions.map(({ host, port, isName, isAllowed, reason, obstacle, count, at }) => (
            <tr key={`${host} ${port} ${isName} ${isAllowed} ${reason}`}>
              <th scope="row" className="mono">
                {isName ? host : `${host}:${port}`}
              </th>
              <td>
                <Status of={isAllowed ? 'completed' : 'failed'} label={isAllowed ? 'allowed' : 'refused'} />
              </td>
              <td>{reason}</td>
              <td className="number">{count}</td>
              <td>
                <Time at={at} />
              </td>
              <td>
                {!isAllowed && (
                  <Remedy
                    rule={isName ? host : ruleOf(host, port)}
                    obstacle={obstacle}
                    network={network}
                    allow={allow}
                  />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

const ruleOf = (host: string, port: number) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)

interface RemedyProps extends Pick<DecisionsProps, 'network' | 'allow'> {
  rule: string
  obstacle: string | undefined
}

/** Offers a button that allows a refused target, when one rule is enough. */
function Remedy({ rule, obstacle, network: { allowOut, denyOut }, allow }: RemedyProps) {
  if (obstacle !== undefined) return <span className="hint">Not by a click: {obstacle}</span>
  const isAllowedNow = (allowOut === null || allowOut.includes(rule)) && !denyOut.includes(rule)
  if (isAllowedNow) return <span className="hint">Allowed by now</span>
  return (
    <button type="button" onClick={() => allow(rule)}>
      Allow
    </button>
  )
}
