import { useQuery } from '@tanstack/react-query'
import { api, take } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { usd } from '../parts/format.ts'
import { Problem } from '../parts/problem.tsx'
import { Scroll } from '../parts/scroll.tsx'
import { dayOf, monthOf } from './spans.ts'

/** Of more, those that cost most; the table has all. */
const SHOWN = 6

/** What models cost today and this month, by agent and by model. */
export function Costs() {
  return (
    <section className="card stack" aria-labelledby="costs">
      <h2 id="costs">Cost, today and this month</h2>
      <div className="costs">
        <CostsBy groupBy="agent" title="By agent" />
        <CostsBy groupBy="model" title="By model" />
      </div>
    </section>
  )
}

function useCosts(groupBy: 'agent' | 'model', from: string) {
  return useQuery({
    queryKey: ['usage', groupBy, from],
    queryFn: () => take(api.GET('/v1/usage', { params: { query: { groupBy, from } } })),
  })
}

interface Cost {
  name: string
  today: number
  month: number
}

function CostsBy({ groupBy, title }: { groupBy: 'agent' | 'model'; title: string }) {
  const now = new Date()
  const today = useCosts(groupBy, dayOf(now))
  const month = useCosts(groupBy, monthOf(now))
  const error = today.error ?? month.error
  if (error) return <Problem error={error} retry={() => void Promise.all([today.refetch(), month.refetch()])} />
  if (!today.data || !month.data) return <p className="hint">Costs are read…</p>
  const ofToday = new Map(today.data.groups.map(({ key, costUsd }) => [key, costUsd]))
  const costs = month.data.groups
    .map(({ key, costUsd }): Cost => ({ name: key ?? 'others', today: ofToday.get(key) ?? 0, month: costUsd }))
    .toSorted((a, b) => b.month - a.month)
  if (costs.length === 0) return <Empty title={`${title}: nothing was spent this month`} />
  return (
    <figure className="stack">
      <figcaption>
        <h3>{title}</h3>
      </figcaption>
      <Bars costs={costs.slice(0, SHOWN)} most={costs[0]?.month ?? 0} />
      <details>
        <summary>Show as a table</summary>
        <Scroll label={`Cost ${title.toLowerCase()}, as a table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">{groupBy}</th>
                <th scope="col" className="number">
                  Today
                </th>
                <th scope="col" className="number">
                  This month
                </th>
              </tr>
            </thead>
            <tbody>
              {costs.map(({ name, today, month }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td className="number">{usd(today)}</td>
                  <td className="number">{usd(month)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </details>
    </figure>
  )
}

/** A bar for the month, and in it one for today. */
function Bars({ costs, most }: { costs: readonly Cost[]; most: number }) {
  const width = (usd: number) => ({ width: `${most > 0 ? (usd / most) * 100 : 0}%` })
  return (
    <ul className="plain bars">
      {costs.map(({ name, today, month }) => (
        <li key={name}>
          <div className="row spread">
            <span className="cut">{name}</span>
            <span className="hint">
              {usd(today)} today, {usd(month)} this month
            </span>
          </div>
          <div className="bar" aria-hidden="true">
            <span style={width(month)} />
            <span style={width(today)} />
          </div>
        </li>
      ))}
    </ul>
  )
}
