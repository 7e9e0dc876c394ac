import { afterEach, beforeAll, expect, test } from 'bun:test'
import { purgeOldEvents } from '../../src/core/events/events.ts'
import { purgeOldDeliveries } from '../../src/core/webhooks/webhooks.ts'
import { useApp } from '../support/app.ts'
import { contents, startChat } from '../support/chat.ts'
import { readEvents, textIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

const configuredKey = 'a-key-of-the-configuration'
const app = useApp(['--api-key', configuredKey])
let id = ''
beforeAll(async () => {
  id = await app.sandbox({ timeoutMs: 600_000 })
})

/** Another process that has the database locked for writing until it is let go. */
async function lock() {
  const script = `
    import { Database } from 'bun:sqlite'
    const db = new Database(process.argv[1])
    db.run('pragma busy_timeout = 5000')
    db.run('begin immediate')
    console.log('locked')
    for await (const _ of Bun.stdin.stream());
    db.run('rollback')`
  const child = Bun.spawn([process.execPath, '-e', script, app.databasePath], { stdio: ['pipe', 'pipe', 'inherit'] })
  const output = child.stdout.getReader()
  await output.read()
  release = async () => {
    child.stdin.end()
    await child.exited
    release = async () => {}
  }
}
let release = async () => {}
afterEach(() => release())

/** The longest time that the event loop stood still, until it is asked. */
function watchLoop(): () => number {
  let last = performance.now()
  let longestMs = 0
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - last)
    last = performance.now()
  }, 5)
  return () => {
    clearInterval(timer)
    return longestMs
  }
}

test('a database that another process has locked holds up nobody but who wants to write', async () => {
  const running = await startChat(app, '/slow 30', { sandboxId: id })
  const reading = readEvents(running.response)
  await lock()
  const stood = watchLoop()
  let isMade = false
  const making = app.ask('POST', `/v1/sandboxes/${id}/threads`, { name: 'later' }).then(answer => {
    isMade = true
    return answer
  })
  const startedAtMs = performance.now()
  for (let round = 0; round < 20; round++) {
    expect((await app.ask('GET', '/health')).status).toBe(200)
    expect((await app.ask('GET', `/v1/sandboxes/${id}`)).status).toBe(200)
    expect((await app.ask('GET', '/v1/me', undefined, { key: configuredKey })).status).toBe(200)
    expect((await app.exec(id, 'echo here')).stdout).toBe('here\n')
    await Bun.sleep(50)
  }
  const longestMs = stood()
  expect(isMade).toBe(false)
  // Each of them would have waited for five seconds, one after the other.
  expect(longestMs).toBeLessThan(4500)
  expect(performance.now() - startedAtMs).toBeLessThan(60_000)
  await release()
  expect((await making).status).toBe(201)
  const events = await reading
  expect(events.map(event => event.id)).toEqual(events.map((_, index) => `${running.runId}/${index + 1}`))
  expect(
    textIn(events.map(({ data }) => data))
      .trim()
      .split(' '),
  ).toHaveLength(30)
  expect((await contents(app, running)).length).toBe(2)
})

test('what was begun before the lock is stored after it: creates, deletes, ends of replies', async () => {
  const doomed = await app.sandbox()
  const started = await startChat(app, 'short\n$ sleep 1', { sandboxId: id })
  const reading = readEvents(started.response)
  const creating = app.ask('POST', '/v1/sandboxes', { agent: 'echo', setup: ['sleep 0.5'] })
  await until(() => app.environmentIds.length >= 3)
  await lock()
  const deleting = app.ask('DELETE', `/v1/sandboxes/${doomed}`)
  await Bun.sleep(2000)
  await release()
  expect((await creating).status).toBe(201)
  expect((await deleting).status).toBe(204)
  expect((await reading).at(-1)?.data).toEqual({ type: 'finish' })
  expect((await app.ask('GET', `/v1/sandboxes/${doomed}`)).status).toBe(404)
  expect(app.log).toEqual([])
})

test('what is kept for a while is removed after the lock', async () => {
  app.beside(db => db.run("update events set created_at = '2000-01-01T00:00:00.000Z'"))
  await lock()
  const removing = [purgeOldEvents(app.runtime), purgeOldDeliveries(app.runtime)]
  await Bun.sleep(100)
  await release()
  await Promise.all(removing)
  expect(app.beside(db => db.query("select id from events where created_at < '2001'").all())).toEqual([])
  expect(app.log).toEqual([])
})
