import { createHmac, randomBytes } from 'node:crypto'

/** The prefix of secrets in the specification of standard-webhooks. */
const PREFIX = 'whsec_'
const SECRET_BYTES = 32

/** A new secret: `whsec_` and base64, https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
export const newWebhookSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString('base64')

/** Makes the headers that prove to a receiver that the message is this server's, and when it was sent. */
export function signatureHeaders(secret: string, id: string, at: Date, body: string): Record<string, string> {
  const seconds = Math.floor(at.getTime() / 1000)
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': `${seconds}`, 'webhook-signature': `v1,${signature}` }
}
