import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { createScheduler } from '../../src/core/schedules/scheduler.ts'
import { removeAgent } from '../../src/db/agents.ts'
import { revokeKey } from '../../src/db/keys.ts'
import { findTeam } from '../../src/db/teams.ts'
import type { Scope } from '../../src/model/scope.ts'
import { useApp } from '../support/app.ts'
import { until } from '../support/until.ts'
import { TestClock } from './clock.ts'

const app = useApp(['--spares', '0'])
let clock: TestClock

/** A server begins, at noon. */
function startAt(at: string): void {
  clock = new TestClock(at)
  app.runtime.schedules = createScheduler(() => app.runtime, clock)
  app.runtime.schedules.start()
}

beforeEach(() => startAt('2026-06-01T12:00:30.000Z'))
afterEach(async () => {
  for (const { id } of (await app.ask('GET', '/v1/schedules')).body.schedules)
    await app.ask('DELETE', `/v1/schedules/${id}`)
  await app.runtime.schedules.close()
})

const create = async (fields: object, key = app.key) => {
  const { status, body } = await app.ask(
    'POST',
    '/v1/schedules',
    { cron: '* * * * *', agent: 'echo', ...fields },
    { key },
  )
  expect([status, body.error?.message]).toEqual([201, undefined])
  return body
}
const runsOf = async (id: string) => (await app.ask('GET', `/v1/schedules/${id}/runs`)).body.runs
/** The runs of a schedule, newest first, once so many have ended. */
async function ended(id: string, count: number): Promise<any[]> {
  let runs: any[] = []
  await until(async () => {
    runs = await runsOf(id)
    return runs.filter(({ endedAt }) => endedAt !== null).length === count
  }, `${count} runs of ${id} have ended`)
  return runs
}
const shown = ({ status, trigger, dueAt }: any) => [status, trigger, dueAt]

describe('a schedule', () => {
  test('that has a prompt gives each run a thread in a sandbox of its own', async () => {
    const schedule = await create({ prompt: 'Say hello', name: 'greeting' })
    expect(schedule).toMatchObject({
      nextAt: '2026-06-01T12:01:00.000Z',
      timeZone: 'UTC',
      sandbox: 'new',
      paused: false,
    })
    clock.advanceTo('2026-06-01T12:01:00.000Z')
    await ended(schedule.id, 1)
    clock.advanceTo('2026-06-01T12:02:00.000Z')
    const runs = await ended(schedule.id, 2)
    expect(runs.map(shown)).toEqual([
      ['completed', 'due', '2026-06-01T12:02:00.000Z'],
      ['completed', 'due', '2026-06-01T12:01:00.000Z'],
    ])
    expect(runs[0].sandboxId).not.toBe(runs[1].sandboxId)
    const run = (await app.ask('GET', `/v1/runs/${runs[0].runId}`)).body
    expect(run).toMatchObject({ threadId: runs[0].threadId, sandboxId: runs[0].sandboxId, status: 'completed' })
    const thread = await app.ask('GET', `/v1/sandboxes/${runs[0].sandboxId}/threads/${runs[0].threadId}`)
    expect(thread.body).toMatchObject({ name: 'greeting', messages: [{ content: 'Say hello' }, {}] })
    expect((await app.ask('GET', `/v1/schedules/${schedule.id}`)).body.nextAt).toBe('2026-06-01T12:03:00.000Z')
    await app.runtime.audit.settled()
    const [begun] = (await app.ask('GET', '/v1/audit?action=run.started')).body.rows
    expect(begun).toMatchObject({ actor: { scheduleId: schedule.id }, target: { runId: runs[0].runId } })
  })

  test('that has a command keeps its files in the same sandbox, and tells exit codes', async () => {
    const schedule = await create({
      command: 'echo $THREADBOX_SCHEDULE_RUN >> log; test $(wc -l < log) = 1',
      sandbox: 'same',
    })
    clock.advanceTo('2026-06-01T12:01:00.000Z')
    await ended(schedule.id, 1)
    clock.advanceTo('2026-06-01T12:02:00.000Z')
    const runs = await ended(schedule.id, 2)
    expect(runs.map((run: any) => [run.status, run.exitCode])).toEqual([
      ['failed', 1],
      ['completed', 0],
    ])
    expect(runs[0].sandboxId).toBe(runs[1].sandboxId)
    expect(await app.shell(runs[0].sandboxId, 'cat log')).toBe(`${runs[1].id}\n${runs[0].id}\n`)
    const output = await app.request('GET', `/v1/sandboxes/${runs[0].sandboxId}/processes/${runs[0].pid}`)
    expect(await output.json()).toMatchObject({ name: `schedule ${runs[0].id}` })
  })

  test('whose run is under way leaves the next one out, and notes that', async () => {
    const sandbox = await app.sandbox()
    const schedule = await create({ command: 'until [ -e go ]; do sleep 0.05; done', sandbox })
    clock.advanceTo('2026-06-01T12:01:00.000Z')
    await until(async () => (await runsOf(schedule.id))[0]?.status === 'running')
    clock.advanceTo('2026-06-01T12:02:00.000Z')
    await ended(schedule.id, 1)
    expect((await runsOf(schedule.id)).map(shown)).toEqual([
      ['skipped', 'due', '2026-06-01T12:02:00.000Z'],
      ['running', 'due', '2026-06-01T12:01:00.000Z'],
    ])
    expect((await app.ask('POST', `/v1/schedules/${schedule.id}/run`)).body.error.code).toBe('conflict')
    await app.shell(sandbox, 'touch go')
    expect((await ended(schedule.id, 2)).map(({ status, error }) => [status, error])).toEqual([
      ['skipped', 'The run before it was under way.'],
      ['completed', null],
    ])
  })

  test('that was missed while no server ran is run once at the start, and then as before', async () => {
    const schedule = await create({ command: 'true', sandbox: await app.sandbox() })
    await app.runtime.schedules.close()
    startAt('2026-06-02T08:00:10.000Z')
    await ended(schedule.id, 1)
    clock.advanceTo('2026-06-02T08:01:00.000Z')
    expect((await ended(schedule.id, 2)).map(shown)).toEqual([
      ['completed', 'due', '2026-06-02T08:01:00.000Z'],
      ['completed', 'missed', '2026-06-01T12:01:00.000Z'],
    ])
  })

  test('is right again after a clock was wrong by years, and does nothing twice after one was set back', async () => {
    const schedule = await create({ command: 'true', sandbox: await app.sandbox() })
    clock.set('2036-01-01T00:00:10.000Z')
    await ended(schedule.id, 1)
    await until(async () => {
      // Again, should the scheduler have set its timer just now.
      clock.set('2026-06-01T12:00:40.000Z')
      return (await app.ask('GET', `/v1/schedules/${schedule.id}`)).body.nextAt === '2026-06-01T12:02:00.000Z'
    })
    clock.advanceTo('2026-06-01T12:02:00.000Z')
    await ended(schedule.id, 2)
    clock.set('2026-06-01T11:50:00.000Z')
    clock.advanceTo('2026-06-01T12:02:30.000Z')
    clock.advanceTo('2026-06-01T12:03:00.000Z')
    expect((await ended(schedule.id, 3)).map(shown)).toEqual([
      ['completed', 'due', '2026-06-01T12:03:00.000Z'],
      ['completed', 'due', '2026-06-01T12:02:00.000Z'],
      ['completed', 'missed', '2026-06-01T12:01:00.000Z'],
    ])
  })

  test('is paused and resumed; what would have been due meanwhile does not come', async () => {
    const schedule = await create({ command: 'true', sandbox: await app.sandbox() })
    const path = `/v1/schedules/${schedule.id}`
    expect((await app.ask('PATCH', path, { paused: true })).body).toMatchObject({
      paused: true,
      pausedBy: 'request',
      nextAt: null,
    })
    clock.advanceTo('2026-06-01T12:05:10.000Z')
    expect((await app.ask('PATCH', path, { paused: false })).body.nextAt).toBe('2026-06-01T12:06:00.000Z')
    clock.advanceTo('2026-06-01T12:06:00.000Z')
    expect((await ended(schedule.id, 1)).map(shown)).toEqual([['completed', 'due', '2026-06-01T12:06:00.000Z']])
  })

  test('is run now, also when it is paused', async () => {
    const schedule = await create({ command: 'exit 3', sandbox: await app.sandbox(), paused: true })
    const { status, body } = await app.ask('POST', `/v1/schedules/${schedule.id}/run`)
    expect([status, body.status, body.trigger]).toEqual([202, 'due', 'request'])
    expect(await ended(schedule.id, 1)).toMatchObject([{ id: body.id, status: 'failed', exitCode: 3 }])
  })

  test('is changed: a command in place of the prompt, another time', async () => {
    const schedule = await create({ prompt: 'hello' })
    const change = { command: 'true', cron: '0 9 * * MON-FRI', timeZone: 'Europe/Berlin', name: 'weekdays' }
    expect((await app.ask('PATCH', `/v1/schedules/${schedule.id}`, change)).body).toMatchObject({
      ...{ prompt: null, command: 'true', name: 'weekdays' },
      nextAt: '2026-06-02T07:00:00.000Z',
    })
  })

  test('that takes too long is ended', async () => {
    const schedule = await create({ command: 'sleep 600', sandbox: await app.sandbox(), timeoutMs: 1000, paused: true })
    await app.ask('POST', `/v1/schedules/${schedule.id}/run`)
    const [run] = await ended(schedule.id, 1)
    expect([run.status, run.error]).toEqual(['timed_out', 'It took longer than 1000 ms.'])
    await until(async () => {
      const { body } = await app.ask('GET', `/v1/sandboxes/${run.sandboxId}/processes/${run.pid}`)
      return body.exitCode === 137
    })
  })

  test('whose agent is gone notes that, and goes on when it is there again', async () => {
    app.agent('sometimes')
    const schedule = await create({ agent: 'sometimes', prompt: 'hello' })
    app.beside(db => removeAgent(db, teamId(), 'sometimes'))
    clock.advanceTo('2026-06-01T12:01:00.000Z')
    expect(await ended(schedule.id, 1)).toMatchObject([{ status: 'failed', error: 'There is no agent "sometimes".' }])
    app.agent('sometimes')
    clock.advanceTo('2026-06-01T12:02:00.000Z')
    expect((await ended(schedule.id, 2))[0]).toMatchObject({ status: 'completed' })
  })

  test('whose sandbox is gone notes that, but makes another one when it has made it itself', async () => {
    const sandbox = await app.sandbox()
    const given = await create({ command: 'true', sandbox, paused: true })
    const own = await create({ command: 'true', sandbox: 'same', paused: true })
    await app.ask('POST', `/v1/schedules/${own.id}/run`)
    const [first] = await ended(own.id, 1)
    for (const id of [sandbox, first.sandboxId]) await app.ask('DELETE', `/v1/sandboxes/${id}`)
    for (const { id } of [given, own]) await app.ask('POST', `/v1/schedules/${id}/run`)
    expect(await ended(given.id, 1)).toMatchObject([
      { status: 'failed', error: 'The sandbox of the schedule is gone.' },
    ])
    expect((await ended(own.id, 2))[0]).toMatchObject({ status: 'completed' })
  })

  test('keeps its last 200 runs, and what runs however old it is', async () => {
    const schedule = await create({ command: 'until [ -e go ]; do sleep 0.05; done', sandbox: await app.sandbox() })
    clock.advanceTo('2026-06-01T12:01:00.000Z')
    await until(async () => (await runsOf(schedule.id))[0]?.status === 'running')
    app.beside(db =>
      db.run(
        `with recursive n(i) as (select 1 union all select i + 1 from n where i < 230)
         insert into schedule_runs (id, schedule_id, trigger, due_at, status, sandbox_id, thread_id, ended_at)
         select 'scr_' || i, '${schedule.id}', 'request', '2026-06-01', 'completed', '', '', '2026-06-01' from n`,
      ),
    )
    clock.advanceTo('2026-06-01T12:02:00.000Z')
    await until(async () => (await runsOf(schedule.id))[0].status === 'skipped')
    const path = `/v1/schedules/${schedule.id}/runs?limit=150`
    const first = (await app.ask('GET', path)).body
    const second = (await app.ask('GET', `${path}&before=${first.nextBefore}`)).body
    expect([first.runs.length, second.runs.length, second.nextBefore]).toEqual([150, 51, null])
    expect(second.runs.at(-1)).toMatchObject({ status: 'running', dueAt: '2026-06-01T12:01:00.000Z' })
    await app.shell(second.runs.at(-1).sandboxId, 'touch go')
    await until(async () => (await runsOf(schedule.id)).every(({ endedAt }: any) => endedAt))
  })
})

const teamId = () => findTeam(app.runtime.db, 'default')!.id
const otherTeamId = () => findTeam(app.runtime.db, 'other')!.id
const keyFor = (...scopes: Scope[]) => createKey(app.runtime.db, { team: 'default', name: 'some', scopes })

describe('whose it is', () => {
  test('another team sees and changes nothing of it: regression', async () => {
    const { id } = await create({ prompt: 'hello', paused: true })
    const requests = [
      ['GET', ''],
      ['PATCH', '', { paused: false }],
      ['DELETE', ''],
      ['POST', '/run'],
      ['GET', '/runs'],
    ] as const
    for (const [method, path, body] of requests) {
      const answer = await app.ask(method, `/v1/schedules/${id}${path}`, body, { key: app.foreignKey })
      expect([answer.status, answer.body.error.code]).toEqual([404, 'not_found'])
    }
    expect((await app.ask('GET', '/v1/schedules', undefined, { key: app.foreignKey })).body.schedules).toEqual([])
    const sandbox = await app.sandbox()
    const taken = { cron: '@daily', agent: 'echo', command: 'true', sandbox }
    const refused = await app.ask('POST', '/v1/schedules', taken, { key: app.foreignKey })
    expect(refused.body.error.code).toBe('sandbox_not_found')
  })

  test('a key may do by a schedule only what it may do itself: regression', async () => {
    const chat = keyFor('chat').key
    const command = await create({ command: 'true', paused: true })
    const prompt = await create({ prompt: 'hello', paused: true }, chat)
    const refused = [
      ['POST', '/v1/schedules', { cron: '@daily', agent: 'echo', command: 'true' }],
      ['POST', '/v1/schedules', { cron: '@daily', agent: 'echo', prompt: 'a', keep: true }],
      ['PATCH', `/v1/schedules/${prompt.id}`, { command: 'true' }],
      ['PATCH', `/v1/schedules/${prompt.id}`, { keep: true }],
      ['PATCH', `/v1/schedules/${command.id}`, { prompt: 'a' }],
      ['PATCH', `/v1/schedules/${command.id}`, { paused: true }],
      ['POST', `/v1/schedules/${command.id}/run`, undefined],
      ['DELETE', `/v1/schedules/${command.id}`, undefined],
    ] as const
    for (const [method, path, body] of refused) {
      const answer = await app.ask(method, path, body, { key: chat })
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 403, 'forbidden'])
    }
    const { token } = (await app.ask('POST', '/v1/tokens', {})).body
    expect((await app.ask('GET', '/v1/schedules', undefined, { key: token })).status).toBe(403)
  })

  test('its runs count for the limits of its key, and wait for their turn: regression', async () => {
    const limits = { 'key.runs': '1' }
    const { key, row } = createKey(app.runtime.db, { team: 'default', name: 'limited', limits })
    const sandbox = await app.sandbox()
    const schedule = await create({ prompt: 'hello', sandbox }, key)
    const free = await create({ prompt: 'hello', sandbox })
    const busy = app.runtime.limits.open('runs', { teamId: row.teamId, keyId: row.id })
    clock.advanceTo('2026-06-01T12:01:00.000Z')
    expect((await ended(free.id, 1)).map(({ status }) => status)).toEqual(['completed'])
    await app.runtime.schedules.close()
    expect(await runsOf(schedule.id)).toMatchObject([{ status: 'due' }])
    startAt('2026-06-01T12:01:01.000Z')
    busy[Symbol.dispose]()
    expect((await ended(schedule.id, 1)).map(({ status }) => status)).toEqual(['completed'])
  })

  test('it is paused when its key is revoked, until another key takes it over: regression', async () => {
    const { key, row } = keyFor('sandboxes')
    const schedule = await create({ command: 'true', sandbox: await app.sandbox() }, key)
    const kept = await create({ command: 'true', sandbox: await app.sandbox() }, key)
    const path = `/v1/schedules/${schedule.id}`
    expect((await app.ask('PATCH', `/v1/schedules/${kept.id}`, { keep: true })).body.keyId).not.toBe(row.id)
    app.beside(db => revokeKey(db, row.id))
    clock.advanceTo('2026-06-01T12:01:00.000Z')
    expect(await ended(schedule.id, 1)).toMatchObject([
      { status: 'skipped', error: expect.stringContaining('was revoked') },
    ])
    expect(await ended(kept.id, 1)).toMatchObject([{ status: 'completed' }])
    expect((await app.ask('GET', path)).body).toMatchObject({ paused: true, pausedBy: 'key', nextAt: null })
    await app.ask('PATCH', path, { paused: false })
    clock.advanceTo('2026-06-01T12:02:00.000Z')
    expect((await ended(schedule.id, 2))[0]).toMatchObject({ status: 'completed' })
  })
})

describe('a request that is refused', () => {
  test.each([
    [{ cron: 'daily' }, 400, 'cron: '],
    [{ timeZone: 'Nowhere' }, 400, 'timeZone: '],
    [{ agent: 'nobody' }, 404, 'There is no agent'],
    [{ sandbox: 'sbx_1' }, 404, 'There is no such sandbox'],
    [{ command: 'true' }, 400, 'prompt: send either'],
    [{ prompt: undefined }, 400, 'prompt: send either'],
    [{ timeoutMs: 1 }, 400, 'timeoutMs'],
  ])('%p', async (fields, status, words) => {
    const answer = await app.ask('POST', '/v1/schedules', { cron: '@daily', agent: 'echo', prompt: 'a', ...fields })
    expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringContaining(words)])
  })
})

test('thousands of schedules have one timer, which waits for the next one', async () => {
  const template = await create({ command: 'true', sandbox: await app.sandbox(), paused: true })
  app.beside(db =>
    db.run(
      `with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
       insert into schedules select 'sch_' || i, '${otherTeamId()}', key_id, name, '0 0 1 1 *', time_zone, agent_slug, prompt, command,
         sandbox, sandbox_id, timeout_ms, keep, null, null, '2026-12-31T00:00:00.000Z', null, created_at, updated_at
       from schedules, n where id = '${template.id}'`,
    ),
  )
  const schedule = await create({ command: 'true', sandbox: template.sandbox })
  expect(clock.waitMs).toBe(30_000)
  const before = performance.now()
  clock.advanceTo('2026-06-01T12:01:00.000Z')
  await ended(schedule.id, 1)
  expect(performance.now() - before).toBeLessThan(20_000)
  app.beside(db => db.run(`delete from schedules where id glob 'sch_[0-9]*' and length(id) < 10`))
})
