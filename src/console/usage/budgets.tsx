import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, type Schemas, take } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { shortId, usd } from '../parts/format.ts'
import { Problem } from '../parts/problem.tsx'
import { Status } from '../parts/status.tsx'

type Budget = Schemas['Budget']

const kinds = new Map([
  ['server', 'Server, today'],
  ['key', 'Key, today'],
  ['agent', 'Agent'],
  ['sandbox', 'Sandbox of'],
  ['thread', 'Thread'],
])
const NEAR = 0.8

/** Shows the budgets, and how much of each is used. */
export function Budgets() {
  const { data, error, refetch } = useQuery({
    queryKey: ['budgets'],
    queryFn: () => take(api.GET('/v1/budgets')),
  })
  const budgets = data?.budgets ?? []
  return (
    <section className="card stack" aria-labelledby="budgets">
      <h2 id="budgets">Budgets</h2>
      {error && <Problem error={error} retry={() => void refetch()} />}
      {data && budgets.length === 0 && (
        <Empty title="Nothing limits what is spent">
          An agent’s options limit what it, and each of its sandboxes, may spend; the server’s settings limit a day, a
          key and a thread.
        </Empty>
      )}
      {budgets.length > 0 && (
        <ul className="plain budgets" aria-label="Budgets">
          {budgets.map(budget => (
            <li key={`${budget.kind} ${budget.id}`}>
              <Used {...budget} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function Used(budget: Budget) {
  const { kind, limitUsd, spentUsd } = budget
  const part = limitUsd > 0 ? spentUsd / limitUsd : 1
  const label = `${kinds.get(kind) ?? kind} ${budget.name ?? budget.id ?? ''}`.trim()
  return (
    <>
      <div className="row spread">
        <span className="cut">
          <span className="hint">{kinds.get(kind) ?? kind}</span> <Name {...budget} />
        </span>
        <span className="row">
          {part >= 1 && <Status of="failed" label="used up" />}
          <span className="numbers">
            {usd(spentUsd)} of {usd(limitUsd)} ({Math.floor(part * 100)} %)
          </span>
        </span>
      </div>
      <meter aria-label={label} value={Math.min(part, 1)} min={0} max={1} high={NEAR} />
    </>
  )
}

function Name({ kind, id, name, sandboxId }: Budget) {
  if (kind === 'agent') return <Link href={`/agents/${id}`}>{name ?? id}</Link>
  if (kind === 'sandbox') return <Link href={`/sandboxes/${id}`}>{`${name}, ${shortId(id ?? '')}`}</Link>
  if (kind === 'thread') return <Link href={`/sandboxes/${sandboxId}/threads/${id}`}>{name ?? id}</Link>
  if (kind === 'key') return name ?? "the configuration's"
  return null
}
