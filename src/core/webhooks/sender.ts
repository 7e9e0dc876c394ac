import { setTimeout as sleep } from 'node:timers/promises'
import { writeWhenFree } from '../../db/busy.ts'
import { showable } from '../../db/lasting.ts'
import { inTransaction } from '../../db/open.ts'
import { type DueWebhook, listDue, listDueWebhooks, noteAttempt } from '../../db/webhook-deliveries.ts'
import { disableWebhook, findWebhook, findWebhookSecret } from '../../db/webhooks.ts'
import { messageOf } from '../../errors.ts'
import type { Attempt, Delivery } from '../../model/webhook.ts'
import type { Runtime } from '../runtime.ts'
import { nextAttempt } from './backoff.ts'
import { LOOKED_AT, mayTakePlace } from './places.ts'
import { signatureHeaders } from './sign.ts'

/** How long a receiver has for its answer. */
const ANSWER_MS = 15_000
const LOOK_MS = 250
const GONE = 410
const ERROR_CHARS = 300
/** How long a delivery that this server could not process keeps its place, as on a full disk: it is due again at once. */
const FAILED_MS = 10_000

type Send = (url: string, init: RequestInit & { signal: AbortSignal }) => Promise<Response>

/** Sends what waits in the outbox. */
export interface WebhookSender {
  /** Stops what is being sent; the next server sends it again. */
  close(): Promise<void>
}

/** Begins to send. Each delivery is tried for a day, until its receiver answers with a 2xx. */
export function startWebhooks(runtime: Pick<Runtime, 'db' | 'log'>, send: Send): WebhookSender {
  const { db, log } = runtime
  const closing = new AbortController()
  const sending = new Map<string, { webhook: DueWebhook; ended: Promise<void> }>()

  const hasPlace = ({ id, teamId }: DueWebhook): boolean => {
    const ofTeam = [...sending.values()].filter(({ webhook }) => webhook.teamId === teamId)
    const ofWebhook = ofTeam.filter(({ webhook }) => webhook.id === id)
    return mayTakePlace({ all: sending.size, team: ofTeam.length, webhook: ofWebhook.length })
  }

  const begin = (webhook: DueWebhook, delivery: Delivery) => {
    const ended = deliver(runtime, send, delivery, closing.signal)
      .catch(async error => {
        log(`webhook ${delivery.webhookId}: ${messageOf(error)}`, 'error')
        await sleep(FAILED_MS, undefined, { signal: closing.signal }).catch(() => {})
      })
      .finally(() => {
        sending.delete(delivery.id)
        look()
      })
    sending.set(delivery.id, { webhook, ended })
  }

  const beginDue = () => {
    const moment = new Date().toISOString()
    for (const webhook of listDueWebhooks(db, moment)) {
      if (!hasPlace(webhook)) continue
      // Deliveries that are being sent are still due.
      const due = listDue(db, webhook.id, moment, LOOKED_AT).filter(({ id }) => !sending.has(id))
      for (const delivery of due) if (hasPlace(webhook)) begin(webhook, delivery)
    }
  }
  /** Looks for due deliveries. Never throws: a failure is logged, and the next look comes by itself. */
  const look = () => {
    if (closing.signal.aborted) return
    try {
      beginDue()
    } catch (error) {
      log(`webhooks: ${messageOf(error)}`, 'error')
    }
  }
  const timer = setInterval(look, LOOK_MS)

  return {
    async close() {
      clearInterval(timer)
      closing.abort()
      await Promise.all([...sending.values()].map(({ ended }) => ended))
    },
  }
}

async function deliver(
  { db }: Pick<Runtime, 'db'>,
  send: Send,
  delivery: Delivery,
  closing: AbortSignal,
): Promise<void> {
  await showable(db)
  const webhook = findWebhook(db, delivery.webhookId)
  const secret = findWebhookSecret(db, delivery.webhookId)
  if (!webhook || secret === undefined) return
  const at = new Date()
  const body = JSON.stringify({ type: delivery.type, timestamp: delivery.createdAt, data: delivery.data })
  const headers = { 'content-type': 'application/json', ...signatureHeaders(secret, delivery.id, at, body) }
  const signal = AbortSignal.any([closing, AbortSignal.timeout(ANSWER_MS)])
  const outcome = await answerOf(send(webhook.url, { method: 'POST', headers, body, signal }))
  // The try was cut off by the closing of this server, so it is not stored: the next server sends it again.
  if (closing.aborted && outcome.status === undefined) return
  const isDelivered = outcome.status !== undefined && outcome.status >= 200 && outcome.status < 300
  const isGone = outcome.status === GONE
  const later = isDelivered || isGone ? undefined : nextAttempt(delivery.attempts + 1, delivery.queuedAt, new Date())
  const attempt: Attempt = {
    at: at.toISOString(),
    isDelivered,
    ...outcome,
    ...(later !== undefined && { nextAttemptAt: later }),
  }
  await writeWhenFree(db, () =>
    inTransaction(db, () => {
      noteAttempt(db, delivery.id, attempt)
      if (isGone) disableWebhook(db, webhook.id)
    }),
  )
}

async function answerOf(sent: Promise<Response>): Promise<Pick<Attempt, 'status' | 'error'>> {
  try {
    const response = await sent
    await response.body?.cancel()
    return { status: response.status, ...(!response.ok && { error: `it answered ${response.status}` }) }
  } catch (error) {
    return { error: (error instanceof Error ? error.message : 'it failed').slice(0, ERROR_CHARS) }
  }
}
