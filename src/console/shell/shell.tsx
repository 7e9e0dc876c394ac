import { lazy, Suspense } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { useTeamEvents } from '../api/team-events.ts'
import { Fence } from '../parts/fence.tsx'
import { NotFound } from '../parts/not-found.tsx'
import { Navigation } from './navigation.tsx'

const Overview = lazy(() => import('../overview/overview.tsx'))
const SandboxPage = lazy(() => import('../sandbox/sandbox.tsx'))
const SandboxList = lazy(() => import('../sandboxes/list.tsx'))
const AgentList = lazy(() => import('../agents/agents.tsx'))
const AgentPage = lazy(() => import('../agents/agent.tsx'))
const NewChat = lazy(() => import('../chat/new-chat.tsx'))
const ThreadList = lazy(() => import('../threads/list.tsx'))
const ThreadPage = lazy(() => import('../conversation/thread.tsx'))
const ThreadRuns = lazy(() => import('../runs/thread-runs.tsx'))
const RunPage = lazy(() => import('../runs/run.tsx'))
const Usage = lazy(() => import('../usage/usage.tsx'))
const Settings = lazy(() => import('../settings/settings.tsx'))

/** Shows the frame of every page, which has the navigation and one room. A room is loaded when it is opened. */
export function Shell() {
  useTeamEvents()
  const [path] = useLocation()
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <Navigation />
      <main id="content" tabIndex={-1}>
        <Fence what="This page" place={path}>
          <Suspense fallback={<p className="hint">Loading…</p>}>
            <Switch>
              <Route path="/" component={Overview} />
              <Route path="/sandboxes" component={SandboxList} />
              <Route path="/sandboxes/:sandboxId/threads/:threadId" component={ThreadPage} />
              <Route path="/sandboxes/:sandboxId/threads/:threadId/runs" component={ThreadRuns} />
              <Route path="/sandboxes/:sandboxId/threads/:threadId/runs/:runId/*?" component={RunPage} />
              <Route path="/sandboxes/:sandboxId/*?" component={SandboxPage} />
              <Route path="/new" component={NewChat} />
              <Route path="/threads" component={ThreadList} />
              <Route path="/agents/:slug/*?" component={AgentPage} />
              <Route path="/agents" component={AgentList} />
              <Route path="/usage" component={Usage} />
              <Route path="/settings/*?" component={Settings} />
              <Route component={NotFound} />
            </Switch>
          </Suspense>
        </Fence>
      </main>
    </div>
  )
}
