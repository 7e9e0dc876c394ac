import { useQuery } from '@tanstack/react-query'
import { api, take } from '../api/client.ts'
import type { components } from '../api/schema.d.ts'
import { Problem } from '../parts/problem.tsx'
import { Status } from '../parts/status.tsx'
import { Time } from '../parts/time.tsx'

type Report = components['schemas']['Selftest']
type Backend = Report['backends'][number]
type Probe = Backend['probes'][number]

/** The last result of `threadbox selftest` on this server, or how to make one. */
export function Selftest({ dataDirectory }: { dataDirectory: string | undefined }) {
  const { data, error } = useQuery({
    queryKey: ['server', 'selftest'],
    queryFn: () => take(api.GET('/v1/server/selftest')),
  })
  return (
    <section className="stack" aria-labelledby="selftest">
      <h3 id="selftest">Selftest</h3>
      {error && <Problem error={error} />}
      {data && (data.selftest ? <Result report={data.selftest} /> : <HowTo dataDirectory={dataDirectory} />)}
    </section>
  )
}

function HowTo({ dataDirectory }: { dataDirectory: string | undefined }) {
  return (
    <p className="hint">
      None has run here. On the server's machine, <code>{commandFor(dataDirectory)}</code> attacks sandboxes of its own
      and shows what holds.
    </p>
  )
}

const commandFor = (dataDirectory: string | undefined) =>
  `threadbox selftest${dataDirectory === undefined ? '' : ` --data-dir ${dataDirectory}`}`

function Result({ report }: { report: Report }) {
  return (
    <>
      <p className="hint">
        <Time at={report.startedAt} />, with version {report.version},{' '}
        {report.isRoot ? 'as root' : 'as an ordinary user'}
      </p>
      <ul className="plain stack" aria-label="Selftest by backend">
        {report.backends.map(each => (
          <li key={nameOf(each)} className="stack">
            <Summary backend={each} />
          </li>
        ))}
      </ul>
    </>
  )
}

const nameOf = ({ backend, runtime }: Backend) => (runtime === undefined ? backend : `${backend} on ${runtime}`)

function Summary({ backend }: { backend: Backend }) {
  const count = (outcome: string) => backend.probes.filter(probe => probe.outcome === outcome).length
  const others = ['leaked', 'untried', 'excused'].filter(outcome => count(outcome) > 0)
  const why = backend.failed ?? backend.notReady
  if (why !== undefined) {
    const label = backend.failed === undefined ? 'not ready' : 'could not be tried'
    return (
      <div>
        <Status of={backend.failed === undefined ? 'pending' : 'failed'} label={label} /> {nameOf(backend)}
        <p className="hint wrap">{why}</p>
      </div>
    )
  }
  return (
    <>
      <div>
        <Verdict backend={backend} /> {nameOf(backend)}
        {backend.isolation && ` (${backend.isolation})`}:{' '}
        {[`${count('held')} held`, ...others.map(each => `${count(each)} ${each}`)].join(', ')}
      </div>
      <Misses probes={backend.probes.filter(({ outcome }) => outcome === 'leaked' || outcome === 'untried')} />
    </>
  )
}

function Verdict({ backend: { probes } }: { backend: Backend }) {
  if (probes.some(({ outcome }) => outcome === 'leaked')) return <Status of="failed" label="leaked" />
  if (probes.some(({ outcome }) => outcome === 'untried')) return <Status of="pending" label="incomplete" />
  return <Status of="completed" label="held" />
}

/** What got through and what that means, and what could not be tried. */
function Misses({ probes }: { probes: readonly Probe[] }) {
  if (probes.length === 0) return null
  return (
    <ul className="plain stack">
      {probes.map(({ id, tried, meaning, outcome, found }) => (
        <li key={id} className="wrap">
          <code>{id}</code> {tried}: {outcome === 'leaked' ? meaning : 'It could not be tried.'}
          {found.map(line => (
            <p key={line} className="hint">
              {line}
            </p>
          ))}
        </li>
      ))}
    </ul>
  )
}
