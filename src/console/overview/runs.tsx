import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, type Schemas, take } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { duration, shortId, usd } from '../parts/format.ts'
import { Problem } from '../parts/problem.tsx'
import { Scroll } from '../parts/scroll.tsx'
import { Status } from '../parts/status.tsx'
import { Time } from '../parts/time.tsx'

const SHOWN = '12'
/** Of a thread that is not among the latest an id is shown. */
const NAMED = '50'

type RunSummary = Schemas['RunPage']['runs'][number]

/** The latest replies, those under way first. */
export function Runs() {
  const runs = useQuery({
    queryKey: ['runs', 'latest'],
    queryFn: () => take(api.GET('/v1/runs', { params: { query: { limit: SHOWN } } })),
  })
  const threads = useQuery({
    queryKey: ['threads', 'latest'],
    queryFn: () => take(api.GET('/v1/threads', { params: { query: { limit: NAMED } } })),
  })
  const found = runs.data?.runs ?? []
  const names = new Map(threads.data?.threads.map(({ id, name }) => [id, name]))
  return (
    <section className="card stack" aria-labelledby="latest-runs">
      <h2 id="latest-runs">Latest runs</h2>
      {runs.error && <Problem error={runs.error} retry={() => void runs.refetch()} />}
      {runs.isSuccess && found.length === 0 && (
        <Empty title="No runs yet">Each reply of an agent is a run: begin a chat and it is here.</Empty>
      )}
      {found.length > 0 && (
        <Scroll label="Latest runs, as a table">
          <table>
            <thead>
              <tr>
                <th scope="col">Thread</th>
                <th scope="col">State</th>
                <th scope="col" className="wide">
                  Model
                </th>
                <th scope="col" className="number wide">
                  Cost
                </th>
                <th scope="col" className="number wide">
                  Took
                </th>
                <th scope="col">Began</th>
              </tr>
            </thead>
            <tbody>
              {found.map(run => (
                <Row key={run.id} name={names.get(run.threadId) ?? undefined} {...run} />
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  )
}

function Row({
  name,
  sandboxId,
  threadId,
  status,
  model,
  usage,
  durationMs,
  startedAt,
  error,
}: RunSummary & { name: string | undefined }) {
  return (
    <tr>
      <td>
        <Link href={`/sandboxes/${sandboxId}/threads/${threadId}`} className="block">
          {name ?? shortId(threadId)}
        </Link>
        {error && <p className="hint">{error}</p>}
      </td>
      <td>
        <Status of={status} />
      </td>
      <td className="wide">{model ?? '–'}</td>
      <td className="number wide">{usd(usage.totalCostUsd)}</td>
      <td className="number wide">{durationMs === null ? '–' : duration(durationMs)}</td>
      <td>
        <Time at={startedAt} />
      </td>
    </tr>
  )
}
