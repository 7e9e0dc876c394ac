import { Route, Switch } from 'wouter'
import { Tabs } from '../parts/tabs.tsx'
import { Keys } from './keys.tsx'
import { Secrets } from './secrets.tsx'
import { ServerSettings } from './server-settings.tsx'
import { Sessions } from './sessions.tsx'
import './settings.css'

const tabs = [
  { path: '/settings', name: 'Keys' },
  { path: '/settings/secrets', name: 'Secrets' },
  { path: '/settings/sessions', name: 'Sessions' },
  { path: '/settings/server', name: 'Server' },
]

export default function Settings() {
  return (
    <section className="stack">
      <div className="row spread">
        <h1>Settings</h1>
        <a href="/docs" target="_blank" rel="noreferrer">
          API document
        </a>
      </div>
      <Tabs label="Settings" tabs={tabs} />
      <Switch>
        <Route path="/settings" component={Keys} />
        <Route path="/settings/secrets" component={Secrets} />
        <Route path="/settings/sessions" component={Sessions} />
        <Route path="/settings/server" component={ServerSettings} />
      </Switch>
    </section>
  )
}
