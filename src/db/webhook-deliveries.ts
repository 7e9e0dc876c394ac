import type { Database } from 'bun:sqlite'
import type { Attempt, Delivery } from '../model/webhook.ts'
import { isObject } from '../read/json.ts'
import { now } from './id.ts'
import { type Columns, present, readJson } from './row.ts'

type Row = Omit<Columns<Delivery>, 'data'> & { data: string }

const columns = `id, webhook_id as webhookId, type, data, created_at as createdAt, queued_at as queuedAt, attempts,
  next_attempt_at as nextAttemptAt, last_attempt_at as lastAttemptAt, last_status as lastStatus,
  last_error as lastError, delivered_at as deliveredAt, dropped_at as droppedAt`

const fromRow = ({ data, ...row }: Row): Delivery => ({
  ...present<Omit<Delivery, 'data'>>(row),
  data: readJson(data, 'data', isObject),
})

/** A webhook that has something to send. */
export interface DueWebhook {
  id: string
  teamId: string
}

/**
 * The webhooks that have something to send at this moment, the one that waits longest coming first. It takes time in proportion
 * to their number.
 */
export const listDueWebhooks = (db: Database, moment: string): DueWebhook[] =>
  db
    .query<DueWebhook, { moment: string }>(
      // Steps from one webhook to the next: a plain `distinct` would read everything that waits.
      `with recursive waiting(id) as (
         select min(webhook_id) from webhook_deliveries where next_attempt_at is not null
         union all
         select (select min(webhook_id) from webhook_deliveries where next_attempt_at is not null and webhook_id > waiting.id)
         from waiting where waiting.id is not null
       ), first(id, moment) as (
         select id, (select min(next_attempt_at) from webhook_deliveries
                     where webhook_id = waiting.id and next_attempt_at is not null)
         from waiting where id is not null
       )
       select w.id, w.team_id as teamId from first join webhooks w on w.id = first.id
       where first.moment <= $moment order by first.moment`,
    )
    .all({ moment })

/**
 * The deliveries of a webhook that are due by this moment, those that are due longest coming first. Deliveries that are being
 * sent are among them.
 */
export const listDue = (db: Database, webhookId: string, moment: string, limit: number): Delivery[] =>
  db
    .query<Row, { webhookId: string; moment: string; limit: number }>(
      `select ${columns} from webhook_deliveries
       where webhook_id = $webhookId and next_attempt_at <= $moment order by next_attempt_at, position limit $limit`,
    )
    .all({ webhookId, moment, limit })
    .map(fromRow)

/** Stores the result of a try. */
export const noteAttempt = (db: Database, id: string, attempt: Attempt): void =>
  void db
    .query(
      `update webhook_deliveries set attempts = attempts + 1, last_attempt_at = $at, last_status = $status,
         last_error = $error, next_attempt_at = $nextAttemptAt, delivered_at = iif($isDelivered, $at, delivered_at)
       where id = $id`,
    )
    .run({ id, status: null, error: null, nextAttemptAt: null, ...attempt })

/** A page of a webhook's log, newest first. */
export const listDeliveries = (
  db: Database,
  { webhookId, limit, before }: { webhookId: string; limit: number; before?: string },
): Delivery[] =>
  db
    .query<Row, { webhookId: string; limit: number; before: string | null }>(
      `select ${columns} from webhook_deliveries
       where webhook_id = $webhookId
         and ($before is null or position < (select position from webhook_deliveries where id = $before))
       order by position desc limit $limit`,
    )
    .all({ webhookId, limit, before: before ?? null })
    .map(fromRow)

/** Makes a delivery due again. Returns false when the webhook has no such delivery. */
export const redeliver = (db: Database, webhookId: string, id: string): boolean =>
  db
    .query(
      `update webhook_deliveries set queued_at = $now, next_attempt_at = $now, delivered_at = null, dropped_at = null
       where id = $id and webhook_id = $webhookId`,
    )
    .run({ id, webhookId, now: now() }).changes > 0

/**
 * Removes deliveries that ended before this moment, and of each webhook those beyond the `most` that ended last: at most `limit`
 * of each kind per call. Waiting deliveries stay.
 */
export function purgeDeliveries(
  db: Database,
  { before, most, limit }: { before: string; most: number; limit: number },
): void {
  db.query(
    `delete from webhook_deliveries where position in (
       select position from webhook_deliveries where next_attempt_at is null and created_at < $before limit $limit)`,
  ).run({ before, limit })
  db.query(
    `with last as materialized (
       select id, (select position from webhook_deliveries where webhook_id = webhooks.id and next_attempt_at is null
                   order by position desc limit 1 offset $most) as position
       from webhooks
     )
     delete from webhook_deliveries where position in (
       select d.position from last join webhook_deliveries d on d.webhook_id = last.id
       where d.next_attempt_at is null and d.position <= last.position limit $limit)`,
  ).run({ most, limit })
}
