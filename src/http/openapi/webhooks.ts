import { Type } from '@sinclair/typebox'
import { answer, noContent, nullable, type Operations, Timestamp } from './operation.ts'

const webhook = {
  id: Type.String(),
  url: Type.String(),
  events: Type.Array(Type.String()),
  createdAt: Timestamp,
  disabledAt: nullable(
    Type.String({ format: 'date-time', description: 'Since when nothing is sent: its receiver answered 410.' }),
  ),
  waiting: Type.Integer({ description: 'Deliveries that wait. Beyond 10,000, or 8 MiB, events are dropped.' }),
  dropped: Type.Integer({ description: 'Events that were dropped, because too much waited.' }),
  lastDroppedAt: nullable(Timestamp),
}

const Webhook = Type.Object(webhook, { title: 'Webhook' })

const NewWebhook = Type.Object(
  { ...webhook, secret: Type.String({ description: 'Signs what is sent. Shown only here.' }) },
  { title: 'NewWebhook' },
)

const Delivery = Type.Object(
  {
    id: Type.String({ description: 'What the receiver gets as `webhook-id`.' }),
    type: Type.String(),
    data: Type.Object({}, { additionalProperties: true }),
    status: Type.Union([
      Type.Literal('waiting'),
      Type.Literal('delivered'),
      Type.Literal('failed'),
      Type.Literal('dropped', { description: 'Too much waited: it was not sent. It can be redelivered.' }),
    ]),
    createdAt: Timestamp,
    attempts: Type.Integer(),
    nextAttemptAt: nullable(Timestamp),
    lastAttemptAt: nullable(Timestamp),
    lastStatus: nullable(Type.Integer()),
    lastError: nullable(Type.String()),
    deliveredAt: nullable(Timestamp),
  },
  { title: 'Delivery' },
)

const Deliveries = Type.Object({ deliveries: Type.Array(Delivery), nextBefore: nullable(Type.String()) })

export const webhookOperations: Operations = {
  'POST /v1/webhooks': {
    id: 'createWebhook',
    summary: 'Sends events to a URL from now on',
    description: 'Signed as standard-webhooks says. What is not answered with a 2xx is sent again, for a day.',
    tag: 'Webhooks',
    answers: { 201: answer(NewWebhook) },
    errors: ['forbidden', 'conflict'],
  },
  'GET /v1/webhooks': {
    id: 'listWebhooks',
    summary: 'Lists webhooks, oldest first',
    tag: 'Webhooks',
    answers: { 200: answer(Type.Object({ webhooks: Type.Array(Webhook) })) },
  },
  'GET /v1/webhooks/:webhookId': {
    id: 'getWebhook',
    summary: 'Gives a webhook',
    tag: 'Webhooks',
    answers: { 200: answer(Webhook) },
    errors: ['not_found'],
  },
  'PATCH /v1/webhooks/:webhookId': {
    id: 'changeWebhook',
    summary: 'Changes what a webhook is for, and enables it again',
    tag: 'Webhooks',
    answers: { 200: answer(Webhook) },
    errors: ['not_found'],
  },
  'DELETE /v1/webhooks/:webhookId': {
    id: 'deleteWebhook',
    summary: 'Deletes a webhook with what waits for it',
    tag: 'Webhooks',
    answers: { 204: noContent },
    errors: ['not_found'],
  },
  'GET /v1/webhooks/:webhookId/deliveries': {
    id: 'listDeliveries',
    summary: 'Lists what was sent or waits, newest first',
    description: 'What has ended is kept for a week, the last 10,000.',
    tag: 'Webhooks',
    answers: { 200: answer(Deliveries) },
    errors: ['not_found'],
  },
  'POST /v1/webhooks/:webhookId/deliveries/:deliveryId/redeliver': {
    id: 'redeliver',
    summary: 'Sends a delivery again',
    tag: 'Webhooks',
    answers: { 202: answer(Type.Object({ id: Type.String() })) },
    errors: ['not_found', 'conflict'],
  },
}
