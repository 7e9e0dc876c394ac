import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Observation } from '../../src/model/observation.ts'
import { useApp } from '../support/app.ts'

const app = useApp()
const seen: Observation[] = []
let subscription: Disposable
beforeAll(() => {
  subscription = app.runtime.observers.subscribe(observation => seen.push(observation))
})
afterAll(() => subscription[Symbol.dispose]())

/** What was observed of a request, by the id that its answer has. */
function of(requestId: string | null) {
  const all = seen.filter(each => ('cause' in each ? each.cause?.requestId : (each as any).requestId) === requestId)
  return all.map(({ time, ...rest }) => ({ ...rest, time: new Date(time).toISOString() }))
}

test('what a request causes is observed, with the id that its answer has and who asked', async () => {
  const created = await app.request('POST', '/v1/sandboxes', { body: { agent: 'echo' } })
  const requestId = created.headers.get('x-request-id')
  expect(requestId).toMatch(/^req_[0-9a-f-]{36}$/)
  const { id: sandboxId, sandboxId: environmentId } = (await created.json()) as any
  const cause = { requestId, keyId: expect.stringMatching(/^key_/), address: '127.0.0.1' }
  const teamId = expect.stringMatching(/^team_/)
  const durationMs = expect.any(Number)
  const time = expect.any(String)
  const made = { sandboxId, environmentId, agentSlug: 'echo', backend: 'nsjail', isSpare: false }
  expect(of(requestId)).toEqual([
    { type: 'request.started', requestId, method: 'POST', time },
    { type: 'sandbox.created', ...made, teamId, cause, durationMs, time },
    {
      type: 'request.ended',
      ...{ method: 'POST', route: '/v1/sandboxes', status: 201, teamId, cause, durationMs, time },
    },
  ] as any)

  const command = 'echo the-command-itself; exit 3'
  const ran = await app.request('POST', `/v1/sandboxes/${sandboxId}/exec`, { body: { command } })
  const about = { execId: expect.stringMatching(/^exec_/), teamId, sandboxId, cause: expect.anything(), time }
  const commandSha256 = new Bun.CryptoHasher('sha256').update(command).digest('hex')
  expect(of(ran.headers.get('x-request-id'))).toEqual([
    expect.anything(),
    { type: 'exec.started', ...about, commandSha256 },
    { type: 'exec.ended', ...about, outcome: 'exited', exitCode: 3, durationMs },
    expect.objectContaining({ type: 'request.ended', route: '/v1/sandboxes/:sandboxId/exec' }),
  ] as any)
  expect(JSON.stringify(seen)).not.toContain('the-command-itself')

  const removed = await app.request('DELETE', `/v1/sandboxes/${sandboxId}`)
  const types = of(removed.headers.get('x-request-id')).map(({ type }) => type)
  expect(types).toEqual(['request.started', 'sandbox.deleted', 'request.ended'])
})

test('a run is observed from its begin to its end, with the request that asked for it', async () => {
  const body = { messages: [{ role: 'user', parts: [{ type: 'text', text: 'the-secret-words' }] }] }
  const answered = await app.request('POST', '/v1/chat/echo', { body })
  await answered.text()
  const runId = answered.headers.get('x-run-id')
  const runs = seen.filter(each => 'runId' in each && each.runId === runId) as any[]
  expect(runs.map(({ type, status, engine }) => [type, status, engine])).toEqual([
    ['run.started', undefined, 'echo'],
    ['run.ended', 'completed', 'echo'],
  ])
  for (const { cause } of runs) expect(cause.requestId).toBe(answered.headers.get('x-request-id'))
  expect(JSON.stringify(seen)).not.toContain('the-secret-words')
})

test('a path that is no route is observed without its words, and who failed has the id too', async () => {
  const answer = await app.request('GET', '/v1/sandboxes/x/no-such-place')
  const [, ended] = of(answer.headers.get('x-request-id')) as any[]
  expect([ended.route, ended.status]).toEqual(['other', 404])
  const stranger = await app.request('GET', '/v1/sandboxes', { key: 'tbx_wrong' })
  const [, refused] = of(stranger.headers.get('x-request-id')) as any[]
  expect(refused).toMatchObject({ status: 401, cause: { address: '127.0.0.1' } })
})

test('an observer that throws is logged, and nobody else feels it', async () => {
  using _ = app.runtime.observers.subscribe(() => {
    throw new Error('broken')
  })
  expect((await app.request('GET', '/health')).status).toBe(200)
  expect(app.log).toContainEqual(expect.stringContaining('an observer of request.ended: broken'))
})
