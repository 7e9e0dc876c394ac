/** The events that a webhook may be for. */
export const webhookEvents = [
  'run.ended',
  'approval.requested',
  'budget.reached',
  'sandbox.stopped',
  'sandbox.deleted',
] as const

export type WebhookEvent = (typeof webhookEvents)[number]

export const isWebhookEvent = (text: string): text is WebhookEvent => webhookEvents.some(each => each === text)

/** A URL that gets a team's events of these types. */
export interface Webhook {
  id: string
  teamId: string
  url: string
  events: readonly WebhookEvent[]
  createdAt: string
  /** Since when nothing is sent, because its receiver said that it is gone. */
  disabledAt?: string
  /** Deliveries that wait to be sent. At most 10,000, or 8 MiB of data: what comes beyond is dropped. */
  waiting: number
  /** Events that were dropped since the webhook was made. */
  dropped: number
  lastDroppedAt?: string
}

/** One event for one webhook: waiting to be sent, delivered, given up, or dropped. */
export interface Delivery {
  id: string
  webhookId: string
  type: string
  /** Ids and states, as of the event. */
  data: Readonly<Record<string, unknown>>
  createdAt: string
  /** From when on its tries count. */
  queuedAt: string
  attempts: number
  /** Absent: it is delivered, given up, or dropped. */
  nextAttemptAt?: string
  lastAttemptAt?: string
  /** The status that the receiver answered with; absent when it did not answer. */
  lastStatus?: number
  lastError?: string
  deliveredAt?: string
  /** Set: too much waited when the event came, so that it was not sent. */
  droppedAt?: string
}

/** What came of one try. */
export interface Attempt {
  at: string
  status?: number
  error?: string
  /** Absent: no more tries. */
  nextAttemptAt?: string
  isDelivered: boolean
}
