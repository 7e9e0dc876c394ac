import type { Database } from 'bun:sqlite'
import { isWebhookEvent, type Webhook, type WebhookEvent } from '../model/webhook.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'
import { type Columns, isStrings, present, readJson } from './row.ts'
import { seal, unseal } from './seal.ts'

type Row = Omit<Columns<Webhook>, 'events'> & { events: string }

const columns = `id, team_id as teamId, url, events, created_at as createdAt, disabled_at as disabledAt,
  waiting, dropped, last_dropped_at as lastDroppedAt`
const SECRET = 'webhooks.secret'

const fromRow = ({ events, ...row }: Row): Webhook => ({
  ...present<Omit<Webhook, 'events'>>(row),
  events: readJson(events, 'events', isStrings).filter(isWebhookEvent),
})

/** Stores a webhook, its secret encrypted. */
export function insertWebhook(
  db: Database,
  { secret, ...input }: Pick<Webhook, 'teamId' | 'url' | 'events'> & { secret: string },
): Webhook {
  mustLast(db)
  const webhook: Webhook = { id: newId('whk'), ...input, createdAt: now(), waiting: 0, dropped: 0 }
  db.query(
    `insert into webhooks (id, team_id, url, events, secret, created_at)
     values ($id, $teamId, $url, $events, $secret, $createdAt)`,
  ).run({
    ...{ id: webhook.id, ...input, createdAt: webhook.createdAt },
    events: JSON.stringify(webhook.events),
    secret: seal(db, secret, SECRET, webhook.id),
  })
  return webhook
}

/** A team's webhooks, oldest first. */
export const listWebhooks = (db: Database, teamId: string): Webhook[] =>
  db
    .query<Row, { teamId: string }>(`select ${columns} from webhooks where team_id = $teamId order by id`)
    .all({ teamId })
    .map(fromRow)

/** A webhook of any team: the caller checks the team. */
export function findWebhook(db: Database, id: string): Webhook | undefined {
  const row = db.query<Row, { id: string }>(`select ${columns} from webhooks where id = $id`).get({ id })
  return row ? fromRow(row) : undefined
}

/** Throws when the key with which the secret was encrypted is missing. */
export function findWebhookSecret(db: Database, id: string): string | undefined {
  const row = db.query<{ secret: string }, { id: string }>('select secret from webhooks where id = $id').get({ id })
  return row ? unseal(db, row.secret, SECRET, id) : undefined
}

/** Changes a webhook's settings, and enables it again. */
export function updateWebhook(db: Database, id: string, change: { url: string; events: readonly WebhookEvent[] }) {
  mustLast(db)
  db.query('update webhooks set url = $url, events = $events, disabled_at = null where id = $id').run({
    id,
    url: change.url,
    events: JSON.stringify(change.events),
  })
}

/** Stops sending to a webhook, and gives up its waiting deliveries. */
export function disableWebhook(db: Database, id: string): void {
  db.query('update webhooks set disabled_at = $now where id = $id').run({ id, now: now() })
  db.query('update webhook_deliveries set next_attempt_at = null where webhook_id = $id').run({ id })
}

/** Removes a webhook with its waiting deliveries and its log. */
export function deleteWebhook(db: Database, id: string): void {
  mustLast(db)
  db.query('delete from webhooks where id = $id').run({ id })
}
