import { afterAll, beforeAll, expect, test } from 'bun:test'
import { noteStops } from '../../src/core/sandboxes/note-stops.ts'
import { startWebhooks, type WebhookSender } from '../../src/core/webhooks/sender.ts'
import { createWebhook, purgeOldDeliveries } from '../../src/core/webhooks/webhooks.ts'
import { ensureTeam, findTeam } from '../../src/db/teams.ts'
import { useApp } from '../support/app.ts'
import { until } from '../support/until.ts'

const app = useApp(['--spares', '0'])
/** Deliveries to addresses that do not answer, however long the sender waits. */
const silent: string[] = []
const answered: string[] = []
const release = Promise.withResolvers<Response>()
let sender: WebhookSender
beforeAll(() => {
  sender = startWebhooks(app.runtime, url => {
    if (!url.includes('silent')) {
      answered.push(url)
      return Promise.resolve(new Response())
    }
    silent.push(url)
    return release.promise
  })
})
afterAll(async () => {
  release.resolve(new Response())
  await sender.close()
})

/** Makes a team with a webhook for each URL. */
function team(name: string, ...urls: string[]) {
  const { id: teamId } = ensureTeam(app.runtime.db, name)
  const webhooks = urls.map(url => createWebhook(app.runtime, { teamId }, { url, events: ['sandbox.deleted'] }).webhook)
  return { teamId, webhooks }
}

/** Stores events as a use case does: at `createdAt`, from when on they are due. */
function happen(teamId: string, count: number, { data = {}, createdAt = '2020-01-01T00:00:00.000Z' } = {}) {
  const insert = app.runtime.db.query(
    `insert into events (team_id, type, agent_slug, sandbox_id, data, created_at)
     values ($teamId, 'sandbox.deleted', 'echo', 'sbx_none', $data, $createdAt)`,
  )
  const text = JSON.stringify(data)
  app.runtime.db.transaction(() => {
    for (let index = 0; index < count; index++) insert.run({ teamId, data: text, createdAt })
  })()
}

const tenSilent = (name: string) => Array.from({ length: 10 }, (_, index) => `https://silent.example/${name}/${index}`)

test('teams whose receivers are slow do not hold up other teams, nor other webhooks of the team', async () => {
  const first = team('first', ...tenSilent('first'))
  happen(first.teamId, 20)
  await until(() => silent.length >= 30)
  const second = team('second', ...tenSilent('second'))
  happen(second.teamId, 20)
  await until(() => silent.length >= 45)
  const quick = team('quick', 'https://quick.example/')
  happen(quick.teamId, 50)
  await until(() => answered.length === 50)
  const mixed = team('mixed', ...tenSilent('mixed').slice(0, 3), 'https://other.example/')
  happen(mixed.teamId, 20)
  await until(() => answered.length === 70)
  expect(silent.length).toBeLessThan(64)
})

/** An outbox that nothing leaves: its deliveries are due in a time to come. */
const later = '2199-01-01T00:00:00.000Z'
const webhookOf = (id: string): any =>
  app.runtime.db.query('select waiting, waiting_bytes as bytes, dropped from webhooks where id = ?').get(id)

test('the outbox of a receiver that is dead is bounded in number, and says what it has dropped', async () => {
  const { id: teamId } = findTeam(app.runtime.db, 'default')!
  const wish = { url: 'https://dead.example/', events: ['sandbox.deleted'] }
  const { id } = (await app.ask('POST', '/v1/webhooks', wish)).body
  happen(teamId, 10_005, { createdAt: later })
  const shown = (await app.ask('GET', `/v1/webhooks/${id}`)).body
  expect(shown).toMatchObject({ waiting: 10_000, dropped: 5, lastDroppedAt: later })
  const { deliveries } = (await app.ask('GET', `/v1/webhooks/${id}/deliveries?limit=10`)).body
  expect(deliveries.map(({ status }: any) => status)).toEqual([
    ...Array(5).fill('dropped'),
    ...Array(5).fill('waiting'),
  ])
  const path = `/v1/webhooks/${id}/deliveries/${deliveries[0].id}`
  expect((await app.ask('POST', `${path}/redeliver`)).status).toBe(202)
  const statusNow = async () =>
    (await app.ask('GET', `/v1/webhooks/${id}/deliveries?limit=1`)).body.deliveries[0].status
  await until(async () => (await statusNow()) === 'delivered')
  expect((await app.ask('GET', `/v1/webhooks/${id}`)).body).toMatchObject({ waiting: 10_000, dropped: 5 })
  await app.ask('DELETE', `/v1/webhooks/${id}`)
})

test('the outbox of a receiver that is dead is bounded in bytes', () => {
  const { teamId, webhooks } = team('large', 'https://dead.example/')
  happen(teamId, 20, { data: { text: 'é'.repeat(512 * 1024) }, createdAt: later })
  expect(webhookOf(webhooks[0]!.id)).toMatchObject({ waiting: 8, dropped: 12 })
})

test('the counts of an outbox follow what is sent, given up, redelivered and removed', async () => {
  const { teamId, webhooks } = team('counted', 'https://counted.example/')
  const { id } = webhooks[0]!
  happen(teamId, 30)
  await until(() => webhookOf(id).waiting === 0)
  expect(webhookOf(id)).toEqual({ waiting: 0, bytes: 0, dropped: 0 })
  happen(teamId, 3, { createdAt: later })
  expect(webhookOf(id)).toEqual({ waiting: 3, bytes: 6, dropped: 0 })
  app.runtime.db.query('delete from webhook_deliveries where webhook_id = ?').run(id)
  expect(webhookOf(id)).toEqual({ waiting: 0, bytes: 0, dropped: 0 })
})

test('of what has ended, the log of a webhook keeps the last 10,000', async () => {
  const { teamId, webhooks } = team('logged', 'https://dead.example/')
  const createdAt = new Date().toISOString()
  happen(teamId, 10_100, { createdAt: later })
  const { id } = webhooks[0]!
  app.runtime.db
    .query('update webhook_deliveries set next_attempt_at = null, created_at = ? where webhook_id = ?')
    .run(createdAt, id)
  const count = () =>
    app.runtime.db.query('select count(*) as count from webhook_deliveries where webhook_id = ?').get(id)
  await purgeOldDeliveries(app.runtime)
  expect(count()).toEqual({ count: 10_000 })
})

test('a stop that could not be stored is stored later, once', async () => {
  const sandboxId = await app.sandbox()
  await app.shell(sandboxId, 'true')
  await noteStops(app.runtime)
  const { db, environments } = app.runtime
  db.run("create trigger no_events before insert on events begin select raise(abort, 'the disk is full'); end")
  const { environment_id: environmentId }: any = db
    .query('select environment_id from sandboxes where id = ?')
    .get(sandboxId)
  await (await environments.get({ backend: 'nsjail', environmentId })).pause!()
  await noteStops(app.runtime)
  await noteStops(app.runtime)
  const logged = () => app.log.filter(line => line.startsWith('stops: '))
  expect(logged()).toEqual([expect.stringContaining('the disk is full')])
  db.run('drop trigger no_events')
  const stops = () => db.query("select id from events where type = 'sandbox.stopped' and sandbox_id = ?").all(sandboxId)
  expect(stops()).toEqual([])
  await Promise.all([noteStops(app.runtime), noteStops(app.runtime)])
  expect(stops().length).toBe(1)
  expect(logged().slice(1)).toEqual([expect.stringContaining('stored again')])
  await noteStops(app.runtime)
  expect(stops().length).toBe(1)
})
