import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import type { Runtime } from '../../core/runtime.ts'
import {
  changeWebhook,
  createWebhook,
  getWebhook,
  listOwnDeliveries,
  listOwnWebhooks,
  redeliverOwn,
  removeWebhook,
} from '../../core/webhooks/webhooks.ts'
import { type Delivery, type Webhook, webhookEvents } from '../../model/webhook.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { Id, PageSize } from '../schema.ts'

const Url = Type.String({ minLength: 1, maxLength: bounds.path })
const Events = Type.Array(Type.Union(webhookEvents.map(event => Type.Literal(event))), { minItems: 1, maxItems: 100 })

const CreateWebhook = Type.Object({ url: Url, events: Events }, { additionalProperties: false })
const ChangeWebhook = Type.Partial(CreateWebhook, { additionalProperties: false })
const WebhookParams = Type.Object({ webhookId: Type.String() })
const Page = Type.Object({ limit: Type.Optional(PageSize), before: Type.Optional(Id) })

const DEFAULT_PAGE = 50

export const webhookRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/webhooks' })
    .post(
      '/',
      ({ request, body, status }) => {
        const { webhook, secret } = createWebhook(runtime, getCaller(request), body)
        return status(201, { ...show(webhook), secret })
      },
      json(CreateWebhook),
    )
    .get('/', ({ request }) => ({ webhooks: listOwnWebhooks(runtime, getCaller(request)).map(show) }))
    .get(
      '/:webhookId',
      ({ request, params: { webhookId } }) => show(getWebhook(runtime, getCaller(request), webhookId)),
      { params: WebhookParams },
    )
    .patch(
      '/:webhookId',
      ({ request, params: { webhookId }, body }) => show(changeWebhook(runtime, getCaller(request), webhookId, body)),
      { params: WebhookParams, ...json(ChangeWebhook) },
    )
    .delete(
      '/:webhookId',
      ({ request, params: { webhookId }, status }) => {
        removeWebhook(runtime, getCaller(request), webhookId)
        return status(204, undefined)
      },
      { params: WebhookParams },
    )
    .get(
      '/:webhookId/deliveries',
      ({ request, params: { webhookId }, query: { limit, before } }) => {
        const size = Number(limit ?? DEFAULT_PAGE)
        const page = { limit: size + 1, ...(before && { before }) }
        const found = listOwnDeliveries(runtime, getCaller(request), webhookId, page)
        const deliveries = found.slice(0, size)
        return {
          deliveries: deliveries.map(showDelivery),
          nextBefore: found.length > size ? (deliveries.at(-1)?.id ?? null) : null,
        }
      },
      { params: WebhookParams, query: Page },
    )
    .post(
      '/:webhookId/deliveries/:deliveryId/redeliver',
      ({ request, params: { webhookId, deliveryId }, status }) => {
        redeliverOwn(runtime, getCaller(request), webhookId, deliveryId)
        return status(202, { id: deliveryId })
      },
      { params: Type.Object({ webhookId: Type.String(), deliveryId: Type.String() }) },
    )

const show = ({ id, url, events, createdAt, disabledAt, waiting, dropped, lastDroppedAt }: Webhook) => ({
  id,
  url,
  events,
  createdAt,
  disabledAt: disabledAt ?? null,
  waiting,
  dropped,
  lastDroppedAt: lastDroppedAt ?? null,
})

function statusOf({ deliveredAt, droppedAt, nextAttemptAt }: Delivery) {
  if (deliveredAt !== undefined) return 'delivered'
  if (droppedAt !== undefined) return 'dropped'
  return nextAttemptAt === undefined ? 'failed' : 'waiting'
}

const showDelivery = (delivery: Delivery) => ({
  id: delivery.id,
  type: delivery.type,
  data: delivery.data,
  status: statusOf(delivery),
  createdAt: delivery.createdAt,
  attempts: delivery.attempts,
  nextAttemptAt: delivery.nextAttemptAt ?? null,
  lastAttemptAt: delivery.lastAttemptAt ?? null,
  lastStatus: delivery.lastStatus ?? null,
  lastError: delivery.lastError ?? null,
  deliveredAt: delivery.deliveredAt ?? null,
})
