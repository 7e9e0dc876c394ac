import { writeWhenFree } from '../../db/busy.ts'
import { inTransaction } from '../../db/open.ts'
import { listDeliveries, purgeDeliveries, redeliver } from '../../db/webhook-deliveries.ts'
import { deleteWebhook, findWebhook, insertWebhook, listWebhooks, updateWebhook } from '../../db/webhooks.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Delivery, Webhook, WebhookEvent } from '../../model/webhook.ts'
import { assertKey, type Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { newWebhookSecret } from './sign.ts'

const MAX_WEBHOOKS = 50
const DELIVERIES_KEPT_MS = 7 * 86_400_000
/** How many finished deliveries of each webhook are kept, besides those that wait. */
const DELIVERIES_KEPT = 10_000
/** How many rows one transaction removes, so that other requests are answered in between. */
const DELIVERIES_PURGED = 10_000

/** The settings of a webhook that a request asks for. */
export interface WebhookWish {
  url: string
  events: readonly WebhookEvent[]
}

/** Makes a webhook of the caller's team. The secret is only returned here. Throws forbidden for a token, and conflict. */
export function createWebhook(
  { db }: Runtime,
  caller: Caller,
  { url, events }: WebhookWish,
): { webhook: Webhook; secret: string } {
  assertKey(caller, 'make webhooks')
  assertUrl(url)
  const { teamId } = caller
  const secret = newWebhookSecret()
  return inTransaction(db, () => {
    if (listWebhooks(db, teamId).length >= MAX_WEBHOOKS) {
      throw new ApiError('conflict', `A team has at most ${MAX_WEBHOOKS} webhooks.`)
    }
    return { webhook: insertWebhook(db, { teamId, url, events: [...new Set(events)], secret }), secret }
  })
}

/** Throws forbidden for a token. */
export function listOwnWebhooks({ db }: Runtime, caller: Caller): Webhook[] {
  assertKey(caller, 'see webhooks')
  return listWebhooks(db, caller.teamId)
}

/** Throws forbidden for a token, and not_found. */
export function getWebhook({ db }: Runtime, caller: Caller, id: string): Webhook {
  assertKey(caller, 'see webhooks')
  const webhook = findWebhook(db, id)
  if (webhook?.teamId !== caller.teamId) throw new ApiError('not_found', 'There is no such webhook.')
  return webhook
}

/** Changes a webhook; one that was disabled is enabled again. Its secret stays. Throws as `getWebhook` does. */
export function changeWebhook(runtime: Runtime, caller: Caller, id: string, change: Partial<WebhookWish>): Webhook {
  const { url, events } = { ...getWebhook(runtime, caller, id), ...change }
  assertUrl(url)
  updateWebhook(runtime.db, id, { url, events: [...new Set(events)] })
  return getWebhook(runtime, caller, id)
}

/** Removes a webhook and its waiting deliveries. Throws as `getWebhook` does. */
export function removeWebhook(runtime: Runtime, caller: Caller, id: string): void {
  getWebhook(runtime, caller, id)
  deleteWebhook(runtime.db, id)
}

/** A page of what was sent or waits, newest first. Throws as `getWebhook` does. */
export function listOwnDeliveries(
  runtime: Runtime,
  caller: Caller,
  id: string,
  page: { limit: number; before?: string },
): Delivery[] {
  getWebhook(runtime, caller, id)
  return listDeliveries(runtime.db, { webhookId: id, ...page })
}

/** Sends a delivery again. Throws as `getWebhook` does, and conflict when the webhook is disabled. */
export function redeliverOwn(runtime: Runtime, caller: Caller, id: string, deliveryId: string): void {
  if (getWebhook(runtime, caller, id).disabledAt !== undefined) {
    throw new ApiError('conflict', 'The webhook is disabled: its receiver said that it is gone. Change it first.')
  }
  if (!redeliver(runtime.db, id, deliveryId)) throw new ApiError('not_found', 'There is no such delivery.')
}

/**
 * Removes deliveries that ended more than a week ago, and all but the newest of each webhook. Never rejects: a failure is logged.
 */
export async function purgeOldDeliveries({ db, log }: Pick<Runtime, 'db' | 'log'>): Promise<void> {
  const before = new Date(Date.now() - DELIVERIES_KEPT_MS).toISOString()
  await writeWhenFree(db, () => purgeDeliveries(db, { before, most: DELIVERIES_KEPT, limit: DELIVERIES_PURGED })).catch(
    error => log(`old deliveries: ${messageOf(error)}`, 'error'),
  )
}

function assertUrl(text: string): void {
  const url = URL.parse(text)
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (!isHttp || url.username || url.password) {
    throw new ApiError('invalid_request', 'url: must be http:// or https://, without a user', { field: 'url' })
  }
}
