import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { codeOf } from '../support/client.ts'
import { startServer, useServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { Receiver } from './receiver.ts'

const server = useServer({ flags: ['--webhook-private', '127.0.0.0/8', '--spares', '0'] })

async function tell(receiver: Receiver, events: string[]) {
  const { status, body } = await server.ask('POST', '/v1/webhooks', { url: receiver.url, events })
  expect(status).toBe(201)
  receiver.secret = body.secret
  return body.id as string
}
const deliveriesOf = async (id: string) => (await server.ask('GET', `/v1/webhooks/${id}/deliveries`)).body.deliveries
const remove = (id: string) => server.ask('DELETE', `/v1/webhooks/${id}`)

test('a receiver is told of what it asked for, signed by the standard, with ids and no text of anybody', async () => {
  using receiver = new Receiver()
  const id = await tell(receiver, ['run.ended', 'sandbox.stopped', 'sandbox.deleted'])
  const sandboxId = await server.sandbox()
  await (await server.chat('the word is swordfish', { sandboxId })).text()
  await server.ask('POST', `/v1/sandboxes/${sandboxId}/stop`)
  await server.ask('DELETE', `/v1/sandboxes/${sandboxId}`)
  await until(() => receiver.received.length === 3)
  expect(receiver.faults).toEqual([])
  const told = Object.fromEntries(receiver.received.map(({ body }) => [body.type, body]))
  expect(told).toEqual({
    'run.ended': {
      type: 'run.ended',
      timestamp: expect.stringMatching(/Z$/),
      data: expect.objectContaining({ sandboxId, agent: 'echo', status: 'completed' }),
    },
    'sandbox.stopped': expect.objectContaining({ data: { sandboxId, agent: 'echo' } }),
    'sandbox.deleted': expect.objectContaining({ data: { sandboxId, agent: 'echo' } }),
  })
  expect(JSON.stringify(receiver.received)).not.toContain('swordfish')
  await until(async () => (await deliveriesOf(id)).every(({ status }: any) => status === 'delivered'))
  await remove(id)
})

test('what fails is sent again with the same id, and can be sent once more', async () => {
  using receiver = new Receiver(count => new Response(null, { status: count < 3 ? 500 : 204 }))
  const id = await tell(receiver, ['sandbox.deleted'])
  await server.ask('DELETE', `/v1/sandboxes/${await server.sandbox()}`)
  await until(() => receiver.received.length === 3)
  expect(new Set(receiver.received.map(each => each.id)).size).toBe(1)
  await until(async () => (await deliveriesOf(id))[0].status === 'delivered')
  const [delivery] = await deliveriesOf(id)
  expect(delivery).toMatchObject({ attempts: 3, lastStatus: 204, lastError: null, nextAttemptAt: null })
  const path = `/v1/webhooks/${id}/deliveries/${delivery.id}/redeliver`
  expect((await server.ask('POST', path)).status).toBe(202)
  await until(() => receiver.received.length === 4)
  expect(receiver.received[3]!.id).toBe(delivery.id)
  expect(receiver.faults).toEqual([])
  await remove(id)
})

test('a receiver that is gone for good is told nothing more until it is changed', async () => {
  using receiver = new Receiver(count => new Response(null, { status: count === 1 ? 410 : 200 }))
  const id = await tell(receiver, ['sandbox.deleted'])
  const isDisabled = async () => (await server.ask('GET', `/v1/webhooks/${id}`)).body.disabledAt !== null
  await server.ask('DELETE', `/v1/sandboxes/${await server.sandbox()}`)
  await until(isDisabled)
  await server.ask('DELETE', `/v1/sandboxes/${await server.sandbox()}`)
  expect((await deliveriesOf(id)).length).toBe(1)
  expect((await server.ask('PATCH', `/v1/webhooks/${id}`, {})).body.disabledAt).toBeNull()
  await server.ask('DELETE', `/v1/sandboxes/${await server.sandbox()}`)
  await until(() => receiver.received.length === 2)
  await remove(id)
})

test('a slow receiver keeps nobody else waiting', async () => {
  const open = Promise.withResolvers<void>()
  using slow = new Receiver(async () => {
    await open.promise
    return new Response()
  })
  using quick = new Receiver()
  const ids = [await tell(slow, ['sandbox.deleted']), await tell(quick, ['sandbox.deleted'])]
  for (let count = 0; count < 12; count++) await server.ask('DELETE', `/v1/sandboxes/${await server.sandbox()}`)
  await until(() => quick.received.length === 12)
  expect(slow.received.length).toBeLessThan(12)
  open.resolve()
  await until(() => slow.received.length === 12)
  for (const id of ids) await remove(id)
})

test('what waits is sent after a kill -9, and nothing is lost', async () => {
  let isUp = false
  using receiver = new Receiver(() => new Response(null, { status: isUp ? 200 : 503 }))
  const id = await tell(receiver, ['sandbox.deleted'])
  const deleted: string[] = []
  for (let count = 0; count < 3; count++) {
    const sandboxId = await server.sandbox()
    await server.ask('DELETE', `/v1/sandboxes/${sandboxId}`)
    deleted.push(sandboxId)
  }
  await server.kill()
  isUp = true
  receiver.received.length = 0
  await server.start()
  await until(() => receiver.received.length >= 3)
  expect(new Set(receiver.received.map(({ body }) => body.data.sandboxId))).toEqual(new Set(deleted))
  await remove(id)
})

test('a webhook whose secret cannot be read holds up nobody, and is tried now and then: regression', async () => {
  using receiver = new Receiver()
  const broken = await tell(receiver, ['sandbox.deleted'])
  const db = new Database(join(server.dataDirectory, 'threadbox.db'))
  db.run(`update webhooks set secret = 'sealed:00000000:' || substr(secret, 17) where id = '${broken}'`)
  db.close()
  const whole = await tell(receiver, ['sandbox.deleted'])
  await server.ask('DELETE', `/v1/sandboxes/${await server.sandbox()}`)
  await until(() => receiver.received.length === 1)
  expect(receiver.faults).toEqual([])
  expect((await deliveriesOf(broken))[0]).toMatchObject({ status: 'waiting', attempts: 0 })
  const failures = () => server.stderr.split(`webhook ${broken}: `).length - 1
  await until(() => failures() > 0)
  expect(failures()).toBeLessThan(5)
  for (const id of [broken, whole]) await remove(id)
})

describe('a webhook is refused', () => {
  const rows: [string, unknown, string][] = [
    ['no URL', { url: 'x', events: ['run.ended'] }, '400 invalid_request'],
    ['another scheme', { url: 'file:///etc/passwd', events: ['run.ended'] }, '400 invalid_request'],
    ['a password', { url: 'http://a:b@example.com/', events: ['run.ended'] }, '400 invalid_request'],
    ['an event that is not there', { url: 'https://example.com', events: ['x'] }, '400 invalid_request'],
    ['no event', { url: 'https://example.com', events: [] }, '400 invalid_request'],
  ]
  test.each(rows)('with %s', async (_, body, code) => {
    expect(codeOf(await server.ask('POST', '/v1/webhooks', body))).toBe(code)
  })

  test('to a token', async () => {
    const { token } = (await server.ask('POST', '/v1/tokens', {})).body
    expect(codeOf(await server.ask('GET', '/v1/webhooks', undefined, { key: token }))).toBe('403 forbidden')
  })
})

test('a private address is not reached unless the operator permits it: regression', async () => {
  using receiver = new Receiver()
  await using closed = await startServer({ flags: ['--spares', '0'] })
  const { body } = await closed.ask('POST', '/v1/webhooks', { url: receiver.url, events: ['sandbox.deleted'] })
  await closed.ask('DELETE', `/v1/sandboxes/${await closed.sandbox()}`)
  const path = `/v1/webhooks/${body.id}/deliveries`
  await until(async () => (await closed.ask('GET', path)).body.deliveries[0]?.attempts > 0)
  const [delivery] = (await closed.ask('GET', path)).body.deliveries
  expect(delivery).toMatchObject({
    status: 'waiting',
    lastStatus: null,
    lastError: expect.stringContaining('not public'),
  })
  expect(receiver.received).toEqual([])
  await closed.ask('DELETE', `/v1/webhooks/${body.id}`)
})
