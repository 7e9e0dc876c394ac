import { useQuery } from '@tanstack/react-query'
import { api, take } from '../api/client.ts'
import { usd } from '../parts/format.ts'
import { dayOf, monthOf } from './spans.ts'
import { Tile } from './tile.tsx'

function useCost(from: string) {
  return useQuery({
    queryKey: ['usage', 'agent', from],
    queryFn: () => take(api.GET('/v1/usage', { params: { query: { groupBy: 'agent', from } } })),
  }).data
}

/** What models cost today and this month, by agent. */
export function Spent() {
  const now = new Date()
  const today = useCost(dayOf(now))
  const month = useCost(monthOf(now))
  return (
    <Tile title="Spent today" figure={today ? usd(today.total.costUsd) : '–'} href="/usage">
      <ul className="plain">
        {today?.groups.slice(0, 2).map(({ key, costUsd }) => (
          <li key={key ?? ''} className="row spread">
            <span>{key ?? 'others'}</span>
            <span>{usd(costUsd)}</span>
          </li>
        ))}
        <li className="row spread hint">
          <span>This month</span>
          <span>{month ? usd(month.total.costUsd) : '–'}</span>
        </li>
      </ul>
    </Tile>
  )
}
