import { useQuery } from '@tanstack/react-query'
import { api, RequestError, take } from '../api/client.ts'
import { bytes, duration } from '../parts/format.ts'
import { Problem } from '../parts/problem.tsx'
import { Status } from '../parts/status.tsx'
import { Selftest } from './selftest.tsx'

const MB = 1024 * 1024
/** The API tells of no change of the machine: it is asked again, while the page is seen. */
const LOOK_MS = 10_000

/** The machine that the server runs on, what a check of its backend has found, and what its last selftest did. Only the operator's keys see it. */
export function Machine() {
  const server = useQuery({
    queryKey: ['server'],
    queryFn: () => take(api.GET('/v1/server')),
    refetchInterval: LOOK_MS,
  })
  if (server.error instanceof RequestError && server.error.status === 403) return null
  if (server.error) return <Problem error={server.error} />
  if (!server.data) return null
  const { machine, disk, backends, version, eventLoopDelayMs, memoryBytes, startedAt, settings } = server.data
  const used = machine.memoryBytes - machine.availableMemoryBytes
  return (
    <section className="card stack" aria-labelledby="machine">
      <div className="row spread">
        <h2 id="machine">Machine</h2>
        <span className="hint">threadbox {version}</span>
      </div>
      <dl className="facts">
        <div>
          <dt>Memory</dt>
          <dd>
            {bytes(used)} of {bytes(machine.memoryBytes)}
            <Meter part={used / machine.memoryBytes} label="Memory in use" />
          </dd>
        </div>
        <div>
          <dt>Load</dt>
          <dd>
            {machine.load.toFixed(2)} on {machine.cpus} cores
            <Meter part={machine.load / machine.cpus} label="Load" />
          </dd>
        </div>
        <div>
          <dt>Free on the disk</dt>
          <dd className="row">
            {bytes(disk.freeMb * MB)}{' '}
            <Status of={disk.level === 'enough' ? 'completed' : 'failed'} label={disk.level} />
          </dd>
        </div>
        <div>
          <dt>Server</dt>
          <dd>
            {bytes(memoryBytes)}
            {eventLoopDelayMs && `, answers ${duration(eventLoopDelayMs.p99)} late at most (p99)`}
          </dd>
        </div>
        <div>
          <dt>Sandboxes go to</dt>
          <dd>
            {backends
              .filter(({ takesNew }) => takesNew)
              .map(({ name, isolations }) => `${name} (${isolations.join(' or ')})`)
              .join(', ')}
          </dd>
        </div>
        <div>
          <dt>Running since</dt>
          <dd>{new Date(startedAt).toLocaleString('en')}</dd>
        </div>
      </dl>
      <Findings />
      <Selftest dataDirectory={settings.find(({ name }) => name === 'data-dir')?.value} />
    </section>
  )
}

function Meter({ part, label }: { part: number; label: string }) {
  return <meter aria-label={label} value={part} min={0} max={1} high={0.9} />
}

/** What does not hold of what the backend needs. */
function Findings() {
  const { data } = useQuery({
    queryKey: ['server', 'checks'],
    queryFn: () => take(api.GET('/v1/server/checks')),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const missing = data?.checks.filter(({ ok }) => !ok) ?? []
  if (!data) return <p className="hint">The backend is checked…</p>
  if (missing.length === 0) return <p className="hint">All {data.checks.length} checks of the backend hold.</p>
  return (
    <ul className="plain stack">
      {missing.map(({ name, detail, remedy, required }) => (
        <li key={name}>
          <Status of={required ? 'failed' : 'pending'} label={name} /> {detail}
          {remedy && <p className="hint">{remedy}</p>}
        </li>
      ))}
    </ul>
  )
}
