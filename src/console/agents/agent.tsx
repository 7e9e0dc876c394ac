import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Route, Switch, useLocation } from 'wouter'
import { api, take } from '../api/client.ts'
import { whileDeleting } from '../api/deleting.ts'
import { CreatingView } from '../chat/creating.tsx'
import { useBeginning } from '../chat/use-beginning.ts'
import { Confirm } from '../parts/confirm.tsx'
import { NotFound } from '../parts/not-found.tsx'
import { Problem } from '../parts/problem.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { Definition } from './definition/definition.tsx'
import { Log } from './log.tsx'
import { RememberedRules } from './remembered-rules.tsx'
import { Variables } from './variables.tsx'
import { Versions } from './versions/versions.tsx'
import './agents.css'

/** The page of one agent: its definition, its versions, and what its sandboxes get. */
export default function AgentPage({ params: { slug } }: { params: { slug: string } }) {
  const path = { slug }
  const [, go] = useLocation()
  const queries = useQueryClient()
  const agent = useQuery({
    queryKey: ['agent', slug],
    queryFn: () => take(api.GET('/v1/agents/{slug}', { params: { path } })),
  })
  const trying = useBeginning()
  if (agent.error) return <Problem error={agent.error} retry={() => void agent.refetch()} />
  const found = agent.data
  if (!found) return null
  const remove = () =>
    whileDeleting(slug, async () => {
      await take(api.DELETE('/v1/agents/{slug}', { params: { path } }))
      for (const name of ['agent', 'version', 'draft']) queries.removeQueries({ queryKey: [name, slug] })
      go('/agents')
    })
  const tryIt = () => trying.begin({ agent: slug })
  const place = `/agents/${slug}`
  return (
    <section className="stack">
      <header className="row spread">
        <div>
          <h1>{found.name}</h1>
          <p className="hint">
            {found.slug}, {found.runtime}
            {found.model && `, ${found.model}`}
            {found.activeVersion !== null && `, version ${found.activeVersion}`}
          </p>
        </div>
        <div className="row">
          <button type="button" className="primary" disabled={trying.isPending} onClick={tryIt}>
            Try it
          </button>
          <Confirm
            title={`Delete ${found.name}?`}
            description="Its versions, variables and logs go with it. Its sandboxes stay."
            action="Delete"
            run={remove}
          >
            Delete
          </Confirm>
        </div>
      </header>
      {trying.isCreating && <CreatingView {...trying} />}
      {trying.problem && <Problem error={trying.problem} />}
      <Tabs
        label="Parts of the agent"
        tabs={[
          { path: place, name: 'Definition' },
          { path: `${place}/versions`, name: 'Versions', count: found.totalDeployments },
          { path: `${place}/variables`, name: 'Variables' },
          { path: `${place}/log`, name: 'Log' },
        ]}
      />
      <Switch>
        <Route path={place}>
          <Definition key={slug} slug={slug} isTrying={trying.isPending} tryIt={tryIt} />
        </Route>
        <Route path={`${place}/versions`}>
          <Versions slug={slug} />
        </Route>
        <Route path={`${place}/variables`}>
          <Variables slug={slug} />
          <RememberedRules slug={slug} />
        </Route>
        <Route path={`${place}/log`}>
          <Log slug={slug} />
        </Route>
        <Route component={NotFound} />
      </Switch>
    </section>
  )
}
