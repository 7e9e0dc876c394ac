import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { api, type Schemas, take } from '../api/client.ts'
import { Chart } from '../parts/chart.tsx'
import { Empty } from '../parts/empty.tsx'
import { usd } from '../parts/format.ts'
import { Problem } from '../parts/problem.tsx'
import { Budgets } from './budgets.tsx'
import { saveCsv } from './csv.ts'
import './usage.css'
import { UsageTable } from './usage-table.tsx'

const groupings = ['day', 'agent', 'model', 'key', 'thread'] as const
type Grouping = (typeof groupings)[number]
type Group = Schemas['Usage']['groups'][number]

const spans = { 7: '7 days', 30: '30 days', 90: '90 days', 365: 'A year' } as const
const DAY_MS = 86_400_000

const startOf = (days: number) => new Date(Date.now() - (days - 1) * DAY_MS).toISOString().slice(0, 10)

function useUsage(groupBy: Grouping, from: string) {
  return useQuery({
    queryKey: ['usage', groupBy, from],
    queryFn: () => take(api.GET('/v1/usage', { params: { query: { groupBy, from } } })),
    placeholderData: before => before,
  })
}

/** Sorts by cost, the highest first, and days by date, the latest first. */
const sorted = (groupBy: Grouping, groups: readonly Group[]): readonly Group[] =>
  groupBy === 'day' ? groups.toReversed() : groups.toSorted((a, b) => b.costUsd - a.costUsd)

/** Shows what models used and cost. */
export default function Usage() {
  const [days, setDays] = useState(30)
  const [groupBy, setGroupBy] = useState<Grouping>('agent')
  const from = startOf(days)
  const byDay = useUsage('day', from)
  const grouped = useUsage(groupBy, from)
  const groups = useMemo(() => sorted(groupBy, grouped.data?.groups ?? []), [groupBy, grouped.data])
  return (
    <section className="stack">
      <div className="row spread">
        <h1>Usage</h1>
        <div className="row">
          <label className="field inline">
            <span>Span</span>
            <select value={days} onChange={event => setDays(Number(event.target.value))}>
              {Object.entries(spans).map(([number, name]) => (
                <option key={number} value={number}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <label className="field inline">
            <span>By</span>
            <select value={groupBy} onChange={event => setGroupBy(event.target.value as Grouping)}>
              {groupings.map(name => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <button type="button" disabled={groups.length === 0} onClick={() => saveCsv(`usage-${groupBy}.csv`, groups)}>
            Save as CSV
          </button>
        </div>
      </div>
      {grouped.error && !byDay.error && <Problem error={grouped.error} retry={() => void grouped.refetch()} />}
      {byDay.error && <Problem error={byDay.error} retry={() => void byDay.refetch()} />}
      {byDay.data && <Days days={days} groups={byDay.data.groups} />}
      <Budgets />
      {grouped.isSuccess && groups.length === 0 && (
        <Empty title="Nothing was used in this time">Each call of a model is counted here.</Empty>
      )}
      {groups.length > 0 && <UsageTable groupBy={grouped.data?.groupBy ?? groupBy} groups={groups} />}
    </section>
  )
}

/** Shows the cost of each day, also of days without a call. */
function Days({ days, groups }: { days: number; groups: readonly { key: string | null; costUsd: number }[] }) {
  const first = Date.parse(startOf(days))
  const costs = new Map(groups.map(({ key, costUsd }) => [key, costUsd]))
  const dates = Array.from({ length: days }, (_, index) => new Date(first + index * DAY_MS))
  return (
    <div className="card">
      <Chart
        title="Cost of a day"
        kind="columns"
        times={dates.map(date => date.getTime() / 1000)}
        series={[{ name: 'Cost', values: dates.map(date => costs.get(date.toISOString().slice(0, 10)) ?? 0) }]}
        format={usd}
      />
    </div>
  )
}
