import type { Database } from 'bun:sqlite'
import initial from './migrations/0001_initial.sql' with { type: 'text' }
import models from './migrations/0002_models.sql' with { type: 'text' }
import deployments from './migrations/0003_deployments.sql' with { type: 'text' }
import conversations from './migrations/0004_conversations.sql' with { type: 'text' }
import environments from './migrations/0005_environments.sql' with { type: 'text' }
import usageIndex from './migrations/0006_usage_index.sql' with { type: 'text' }
import waiting from './migrations/0007_waiting.sql' with { type: 'text' }
import queuedMessages from './migrations/0008_queued_messages.sql' with { type: 'text' }
import branches from './migrations/0009_branches.sql' with { type: 'text' }
import search from './migrations/0010_search.sql' with { type: 'text' }
import waitingReplies from './migrations/0011_waiting_replies.sql' with { type: 'text' }
import rememberedRules from './migrations/0012_remembered_rules.sql' with { type: 'text' }
import sessions from './migrations/0013_sessions.sql' with { type: 'text' }
import events from './migrations/0014_events.sql' with { type: 'text' }
import runEvents from './migrations/0015_run_events.sql' with { type: 'text' }
import versions from './migrations/0016_versions.sql' with { type: 'text' }
import lateSearch from './migrations/0017_late_search.sql' with { type: 'text' }
import keyScopes from './migrations/0018_key_scopes.sql' with { type: 'text' }
import webhooks from './migrations/0019_webhooks.sql' with { type: 'text' }
import webhookBounds from './migrations/0020_webhook_bounds.sql' with { type: 'text' }
import schedules from './migrations/0021_schedules.sql' with { type: 'text' }
import limits from './migrations/0022_limits.sql' with { type: 'text' }
import audit from './migrations/0023_audit.sql' with { type: 'text' }
import removedTeams from './migrations/0024_removed_teams.sql' with { type: 'text' }
import snapshots from './migrations/0025_snapshots.sql' with { type: 'text' }
import e2b from './migrations/0026_e2b.sql' with { type: 'text' }
import secrets from './migrations/0027_secrets.sql' with { type: 'text' }
import sandboxNames from './migrations/0028_sandbox_names.sql' with { type: 'text' }
import isolation from './migrations/0029_isolation.sql' with { type: 'text' }
import { sealRows } from './seal-rows.ts'

type Migration = (db: Database) => void

const sql =
  (text: string): Migration =>
  db => {
    db.run(text)
  }

/** Each step brings the schema to the next version, within a transaction of the caller. */
export const migrations: readonly Migration[] = [
  sql(initial),
  sql(models),
  db => {
    sql(deployments)(db)
    sealRows(db)
  },
  sql(conversations),
  sql(environments),
  sql(usageIndex),
  sql(waiting),
  sql(queuedMessages),
  sql(branches),
  sql(search),
  sql(waitingReplies),
  sql(rememberedRules),
  sql(sessions),
  sql(events),
  sql(runEvents),
  sql(versions),
  sql(lateSearch),
  sql(keyScopes),
  sql(webhooks),
  sql(webhookBounds),
  sql(schedules),
  sql(limits),
  sql(audit),
  sql(removedTeams),
  sql(snapshots),
  sql(e2b),
  sql(secrets),
  sql(sandboxNames),
  sql(isolation),
]

/** The version of a database's schema; 0 for a new database. */
export const schemaOf = (db: Database): number =>
  db.query<{ user_version: number }, []>('pragma user_version').get()?.user_version ?? 0
