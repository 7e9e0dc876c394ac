import { useQuery } from '@tanstack/react-query'
import { Link, Route, Switch } from 'wouter'
import { api, type Schemas, take } from '../api/client.ts'
import type { ThreadPlace } from '../conversation/place.ts'
import '../conversation/conversation.css'
import { Empty } from '../parts/empty.tsx'
import { count, duration, usd } from '../parts/format.ts'
import { NotFound } from '../parts/not-found.tsx'
import { Problem } from '../parts/problem.tsx'
import { Status } from '../parts/status.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { EventList } from './event-list.tsx'
import { Replay } from './replay.tsx'
import './runs.css'
import { useRunEvents } from './use-run-events.ts'

/** Shows one run: its outcome, the replay of its reply, and the events of its stream. */
export default function RunPage({ params }: { params: { sandboxId: string; threadId: string; runId: string } }) {
  const { sandboxId, threadId, runId } = params
  const run = useQuery({
    queryKey: ['runs', 'one', runId],
    queryFn: () => take(api.GET('/v1/runs/{runId}', { params: { path: { runId } } })),
  })
  const thread = `/sandboxes/${sandboxId}/threads/${threadId}`
  return (
    <section className="stack">
      <header>
        <p className="hint">
          <Link href={thread}>The conversation</Link> / <Link href={`${thread}/runs`}>its runs</Link>
        </p>
        <div className="row">
          <h1>Run</h1>
          {run.data && <Status of={run.data.status} />}
        </div>
        <p className="hint mono wrap">{runId}</p>
      </header>
      {run.error && <Problem error={run.error} retry={() => void run.refetch()} />}
      {run.data && <Facts {...run.data} />}
      {run.data && (
        <Stream place={{ sandboxId, threadId, agent: '' }} run={run.data} path={`${thread}/runs/${runId}`} />
      )}
    </section>
  )
}

function Facts({ error, startedAt, durationMs, model, usage, tools }: Schemas['Run']) {
  return (
    <>
      {error && <Problem error={new Error(error)} />}
      <dl className="facts run-facts card">
        <div>
          <dt>Began</dt>
          <dd>{new Date(startedAt).toLocaleString('en')}</dd>
        </div>
        <div>
          <dt>Took</dt>
          <dd>{durationMs === null ? '–' : duration(durationMs)}</dd>
        </div>
        <div>
          <dt>Cost</dt>
          <dd>
            {usd(usage.totalCostUsd)} for {count(usage.totalTokens)} tokens
          </dd>
        </div>
        <div>
          <dt>Model</dt>
          <dd>{model ?? '–'}</dd>
        </div>
        <div>
          <dt>Calls of tools</dt>
          <dd>{count(tools.length)}</dd>
        </div>
      </dl>
    </>
  )
}

function Stream({ place, run, path }: { place: ThreadPlace; run: Schemas['Run']; path: string }) {
  const isActive = run.status === 'active'
  const { events, more, isRead, error, refetch } = useRunEvents(run.id, isActive)
  if (error) return <Problem error={error} retry={() => void refetch()} />
  if (!isRead) return <p className="hint">Its events are read…</p>
  if (events.length === 0 && isActive) return <p className="hint">Nothing has come yet.</p>
  if (events.length === 0)
    return <Empty title="The events of this run are gone">They are kept for a week after the end of a run.</Empty>
  return (
    <>
      <Tabs
        label="Views of the run"
        tabs={[
          { path, name: 'Replay' },
          { path: `${path}/events`, name: 'Events', count: events.length },
        ]}
      />
      {isActive && <p className="hint">The run goes on: what comes is added here.</p>}
      <Switch>
        <Route path={path}>
          <Replay place={place} events={events} />
        </Route>
        <Route path={`${path}/events`}>
          <EventList events={events} more={more} />
        </Route>
        <Route component={NotFound} />
      </Switch>
    </>
  )
}
