import { useQuery, useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { Link, Route, Switch, useLocation } from 'wouter'
import { api, take } from '../api/client.ts'
import { whileDeleting } from '../api/deleting.ts'
import { Confirm } from '../parts/confirm.tsx'
import { NotFound } from '../parts/not-found.tsx'
import { Problem } from '../parts/problem.tsx'
import { SandboxStatus } from '../parts/status.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { About } from './about.tsx'
import './sandbox.css'

const Files = lazy(() => import('./files/files.tsx'))
const Terminals = lazy(() => import('./terminals/terminals.tsx'))
const Processes = lazy(() => import('./processes/processes.tsx'))
const Ports = lazy(() => import('./ports.tsx'))
const Network = lazy(() => import('./network.tsx'))
const Use = lazy(() => import('./use.tsx'))

/** Shows one sandbox and everything in it. */
export default function SandboxPage({ params: { sandboxId } }: { params: { sandboxId: string } }) {
  const [, go] = useLocation()
  const queries = useQueryClient()
  const sandbox = useQuery({
    queryKey: ['sandbox', sandboxId],
    queryFn: () => take(api.GET('/v1/sandboxes/{sandboxId}', { params: { path: { sandboxId } } })),
  })
  if (sandbox.error) return <Problem error={sandbox.error} retry={() => void sandbox.refetch()} />
  const found = sandbox.data
  if (!found) return null
  const path = `/sandboxes/${sandboxId}`
  const stop = async () => {
    await take(api.POST('/v1/sandboxes/{sandboxId}/stop', { params: { path: { sandboxId } } }))
    await queries.invalidateQueries({ queryKey: ['sandbox', sandboxId] })
  }
  const remove = () =>
    whileDeleting(sandboxId, async () => {
      await take(api.DELETE('/v1/sandboxes/{sandboxId}', { params: { path: { sandboxId } } }))
      queries.removeQueries({ queryKey: ['sandbox', sandboxId] })
      go('/sandboxes')
    })
  return (
    <section className="stack">
      <header className="row spread">
        <div>
          <h1>{found.agent.name}</h1>
          <p className="hint mono wrap">{found.id}</p>
        </div>
        <div className="row">
          <SandboxStatus of={found} />
          <Link href={`/new?sandbox=${found.id}`} className="button primary">
            New chat
          </Link>
          {found.isRunning !== false && (
            <Confirm
              title="Stop this sandbox?"
              description="Its processes and replies end. Files and threads stay, and its next use starts it again."
              action="Stop"
              className=""
              run={stop}
            >
              Stop
            </Confirm>
          )}
          <Confirm
            title="Delete this sandbox?"
            description="Its processes end, and its files and threads are gone then."
            action="Delete"
            run={remove}
          >
            Delete
          </Confirm>
        </div>
      </header>
      {found.error && <Problem error={new Error(found.error)} />}
      <Tabs
        label="Parts of the sandbox"
        tabs={[
          { path, name: 'Threads', count: found.threads.length },
          { path: `${path}/files`, name: 'Files' },
          { path: `${path}/terminals`, name: 'Terminals' },
          { path: `${path}/processes`, name: 'Processes' },
          { path: `${path}/ports`, name: 'Ports' },
          { path: `${path}/network`, name: 'Network' },
          { path: `${path}/use`, name: 'Use' },
        ]}
      />
      <Suspense fallback={<p className="hint">Loading…</p>}>
        <Switch>
          <Route path={path}>
            <About sandbox={found} />
          </Route>
          <Route path={`${path}/files`}>
            <Files sandboxId={sandboxId} />
          </Route>
          <Route path={`${path}/terminals`}>
            <Terminals sandboxId={sandboxId} />
          </Route>
          <Route path={`${path}/processes`}>
            <Processes sandboxId={sandboxId} />
          </Route>
          <Route path={`${path}/ports`}>
            <Ports sandboxId={sandboxId} />
          </Route>
          <Route path={`${path}/network`}>
            <Network sandbox={found} />
          </Route>
          <Route path={`${path}/use`}>
            <Use sandbox={found} />
          </Route>
          <Route component={NotFound} />
        </Switch>
      </Suspense>
    </section>
  )
}
