import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, type Schemas, take } from '../api/client.ts'
import { Chart } from '../parts/chart.tsx'
import { Empty } from '../parts/empty.tsx'
import { bytes, count } from '../parts/format.ts'
import { Problem } from '../parts/problem.tsx'

const MIB = 1024 * 1024
/** No event tells of a new sample, so that the page asks this often. */
const LOOK_MS = 10_000

type Figure = 'memoryBytes' | 'diskBytes' | 'cpus' | 'processes'

const cores = (number: number): string => number.toFixed(2)

const figures: readonly { of: Figure; name: string; format: (value: number) => string; leastTop: number }[] = [
  { of: 'memoryBytes', name: 'Memory', format: bytes, leastTop: MIB },
  { of: 'cpus', name: 'CPU cores', format: cores, leastTop: 0.1 },
  { of: 'diskBytes', name: 'Disk', format: bytes, leastTop: MIB },
  { of: 'processes', name: 'Processes and threads', format: count, leastTop: 4 },
]

/** Shows what the sandbox uses now and what it may use, and its use in the last hour. */
export default function Use({ sandbox }: { sandbox: Schemas['Sandbox'] }) {
  const { id, limits } = sandbox
  const stats = useQuery({
    queryKey: ['sandbox', id, 'stats'],
    queryFn: () => take(api.GET('/v1/sandboxes/{sandboxId}/stats', { params: { path: { sandboxId: id } } })),
    refetchInterval: LOOK_MS,
  })
  const samples = useMemo(() => stats.data?.samples ?? [], [stats.data])
  const times = useMemo(() => samples.map(({ at }) => Date.parse(at) / 1000), [samples])
  if (stats.error) return <Problem error={stats.error} retry={() => void stats.refetch()} />
  const now = sandbox.isRunning === false ? null : (samples.at(-1) ?? sandbox.use)
  const limitOf: Record<Figure, number | undefined> = {
    memoryBytes: limits.memoryMb && limits.memoryMb * MIB,
    cpus: limits.cpus,
    diskBytes: limits.diskMb && limits.diskMb * MIB,
    processes: limits.processes,
  }
  return (
    <div className="stack">
      <dl className="card use-now" aria-label="In use now">
        {figures.map(({ of, name, format }) => {
          const value = now?.[of] ?? null
          const limit = limitOf[of]
          return (
            <div key={of}>
              <dt className="hint">{name}</dt>
              <dd>
                <strong>{value === null ? '–' : format(value)}</strong>
                <span className="hint">{limit === undefined ? ' without a limit' : ` of ${format(limit)}`}</span>
              </dd>
            </div>
          )
        })}
      </dl>
      {stats.isSuccess && samples.length < 2 && (
        <Empty title="Nothing to plot yet">While it runs, its use is noted every ten seconds, for an hour.</Empty>
      )}
      {samples.length > 1 && figures.map(figure => <Plotted key={figure.of} {...figure} {...{ times, samples }} />)}
    </div>
  )
}

interface PlottedProps {
  of: Figure
  name: string
  format: (value: number) => string
  leastTop: number
  times: readonly number[]
  samples: readonly Schemas['SandboxUse'][]
}

/** Shows one measurement over time, and nothing when the backend does not measure it. */
function Plotted({ of, name, format, leastTop, times, samples }: PlottedProps) {
  const series = useMemo(() => [{ name, values: samples.map(sample => sample[of]) }], [name, samples, of])
  if (samples.every(sample => sample[of] === null)) return null
  return <Chart title={`${name}, the last hour`} {...{ times, series, format, leastTop }} />
}
