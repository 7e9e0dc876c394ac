import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { readChunks } from '../support/sse.ts'

const app = useApp()
const message = { messages: [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }] }
const tokenFor = async (fields: object): Promise<string> => (await app.ask('POST', '/v1/tokens', fields)).body.token
const as = (key: string) => (method: string, path: string, body?: unknown) => app.ask(method, path, body, { key })

beforeAll(() => {
  app.agent('mine')
  app.agent('yours')
})

describe('expiry', () => {
  const hour = 3_600_000
  const lifetimes: [string | undefined, number][] = [
    ['900s', hour / 4],
    ['15m', hour / 4],
    ['999999s', 24 * hour],
    ['1h', hour],
    ['24h', 24 * hour],
    ['1d', 24 * hour],
    ['2d', 24 * hour],
    ['1000h', 24 * hour],
    [undefined, hour],
  ]
  for (const [expiresIn, expected] of lifetimes) {
    test(`${expiresIn ?? 'by default'}`, async () => {
      const { status, body } = await app.ask('POST', '/v1/tokens', { expiresIn })
      expect(status).toBe(201)
      expect(Object.keys(body).sort()).toEqual(['expiresAt', 'token'])
      expect(Math.abs(Date.parse(body.expiresAt) - Date.now() - expected)).toBeLessThan(5000)
      expect((await as(body.token)('GET', '/v1/sandboxes')).status).toBe(200)
    })
  }

  for (const expiresIn of ['', '1', 'h', '0h', '-1h', '1.5h', '1w', '1H ', '1h1m', 3600, null, '99999999h']) {
    test(`${JSON.stringify(expiresIn)} is refused`, async () => {
      const answer = await app.ask('POST', '/v1/tokens', { expiresIn })
      expect(codeOf(answer)).toBe('400 invalid_request')
      expect(answer.body.error.field).toBe('expiresIn')
    })
  }

  test('a token without a body is for all agents', async () => {
    const { status, body } = await app.ask('POST', '/v1/tokens')
    expect(status).toBe(201)
    expect((await as(body.token)('POST', '/v1/sandboxes', { agent: 'mine' })).status).toBe(201)
  })
})

test('a token that was changed, or is another installation’s, is unknown', async () => {
  const token = await tokenFor({ agents: ['mine'] })
  const [body = '', signature = ''] = token.slice(4).split('.')
  const wider = Buffer.from(Buffer.from(body, 'base64url').toString().replace('mine', 'your')).toString('base64url')
  for (const forged of [
    `tbt_${wider}.${signature}`,
    `tbt_${body}.${signature.slice(1)}`,
    `tbt_${body}.`,
    `tbt_.${signature}`,
  ]) {
    expect(codeOf(await as(forged)('GET', '/v1/sandboxes'))).toBe('401 unauthorized')
  }
})

test('a token cannot make tokens', async () => {
  expect(codeOf(await as(await tokenFor({}))('POST', '/v1/tokens', {}))).toBe('403 forbidden')
})

describe('a token for an agent', () => {
  let ask: ReturnType<typeof as>
  let other = ''
  beforeAll(async () => {
    ask = as(await tokenFor({ agents: ['mine'] }))
    other = await app.sandbox({ agent: 'yours' })
  })

  test('does all with it', async () => {
    const { body } = await ask('POST', '/v1/sandboxes', { agent: 'mine' })
    expect((await ask('POST', `/v1/sandboxes/${body.id}/exec`, { command: 'echo 1' })).body.stdout).toBe('1\n')
    expect((await ask('POST', '/v1/chat/mine', { sandboxId: body.id, ...message })).status).toBe(200)
    expect((await ask('DELETE', `/v1/sandboxes/${body.id}`)).status).toBe(204)
  })

  test('does nothing with others: 403', async () => {
    const uses: [string, string, object?][] = [
      ['POST', '/v1/sandboxes', { agent: 'yours' }],
      ['POST', '/v1/sandboxes', { agent: 'unknown' }],
      ['GET', `/v1/sandboxes/${other}`],
      ['DELETE', `/v1/sandboxes/${other}`],
      ['POST', `/v1/sandboxes/${other}/exec`, { command: 'true' }],
      ['GET', `/v1/sandboxes/${other}/threads`],
      ['POST', '/v1/chat/yours', message],
      ['POST', '/v1/chat/mine', { sandboxId: other, ...message }],
      ['GET', `/v1/chat/yours/${other}/stream`],
      ['DELETE', `/v1/chat/mine/${other}/stream`],
    ]
    for (const [method, path, body] of uses) expect(codeOf(await ask(method, path, body))).toBe('403 forbidden')
  })

  test('lists its own sandboxes alone', async () => {
    const own = (await ask('POST', '/v1/sandboxes', { agent: 'mine' })).body.id
    const listed = (await ask('GET', '/v1/sandboxes')).body.sandboxes
    expect(listed[0].id).toBe(own)
    expect(listed.every(({ agent }: any) => agent.slug === 'mine')).toBe(true)
  })

  test('an empty list of agents is a token for none', async () => {
    const none = as(await tokenFor({ agents: [] }))
    expect(codeOf(await none('POST', '/v1/sandboxes', { agent: 'mine' }))).toBe('403 forbidden')
    expect((await none('GET', '/v1/sandboxes')).body.sandboxes).toEqual([])
  })
})

describe('a token of an end user', () => {
  let ann: ReturnType<typeof as>
  let bob: ReturnType<typeof as>
  beforeAll(async () => {
    ann = as(await tokenFor({ userId: 'ann' }))
    bob = as(await tokenFor({ userId: 'bob' }))
  })

  test('sees what this user made, and what others made is unknown', async () => {
    const { id } = (await ann('POST', '/v1/sandboxes', { agent: 'mine' })).body
    const ofTeam = await app.sandbox()
    expect((await ann('GET', '/v1/sandboxes')).body.sandboxes.map((each: any) => each.id)).toEqual([id])
    expect((await bob('GET', '/v1/sandboxes')).body.sandboxes).toEqual([])
    expect((await app.ask('GET', `/v1/sandboxes/${id}`)).status).toBe(200)
    for (const unseen of [id, ofTeam]) {
      expect(codeOf(await bob('GET', `/v1/sandboxes/${unseen}`))).toBe('404 sandbox_not_found')
      expect(codeOf(await bob('POST', `/v1/sandboxes/${unseen}/exec`, { command: 'true' }))).toBe(
        '404 sandbox_not_found',
      )
      expect(codeOf(await bob('POST', '/v1/chat/mine', { sandboxId: unseen, ...message }))).toBe(
        '404 sandbox_not_found',
      )
      expect((await bob('GET', `/v1/chat/mine/${unseen}/stream`)).status).toBe(204)
      expect(codeOf(await bob('DELETE', `/v1/chat/mine/${unseen}/stream`))).toBe('404 sandbox_not_found')
    }
  })

  test('sees what a key made for this user, and cannot make anything for another', async () => {
    const { id } = (await app.ask('POST', '/v1/sandboxes', { agent: 'mine', externalUserId: 'ann' })).body
    const path = `/v1/sandboxes/${id}`
    const thread = (await app.ask('POST', `${path}/threads`, { externalUserId: 'ann' })).body
    expect((await ann('GET', path)).body.threads.map((each: any) => each.id)).toEqual([thread.id])
    expect(codeOf(await bob('GET', path))).toBe('404 sandbox_not_found')
    const own = (await bob('POST', '/v1/sandboxes', { agent: 'mine', externalUserId: 'ann' })).body.id
    expect([
      (await bob('GET', `/v1/sandboxes/${own}`)).status,
      (await ann('GET', `/v1/sandboxes/${own}`)).status,
    ]).toEqual([200, 404])
  })

  test.each([[{}], [[]], [1], [true], [null], ['x'.repeat(201)]])(
    'is named by a text: not %p',
    async externalUserId => {
      const { id } = (await app.ask('POST', '/v1/sandboxes', { agent: 'mine' })).body
      const answers = await Promise.all([
        app.ask('POST', '/v1/sandboxes', { agent: 'mine', externalUserId }),
        app.ask('POST', `/v1/sandboxes/${id}/threads`, { externalUserId }),
        app.ask('POST', '/v1/chat/mine', { sandboxId: id, externalUserId, ...message }),
      ])
      for (const { status, body } of answers) expect([status, body.error.field]).toEqual([400, 'externalUserId'])
    },
  )

  test('sees in a sandbox only this user’s threads', async () => {
    const { id } = (await ann('POST', '/v1/sandboxes', { agent: 'mine' })).body
    const own = (await ann('POST', `/v1/sandboxes/${id}/threads`, { name: 'ann' })).body
    const ofTeam = (await app.ask('POST', `/v1/sandboxes/${id}/threads`, { name: 'team' })).body
    const forAnn = await app.request('POST', '/v1/chat/mine', {
      body: { sandboxId: id, externalUserId: 'ann', ...message },
    })
    await readChunks(forAnn)
    const seen = (await ann('GET', `/v1/sandboxes/${id}/threads`)).body.map((each: any) => each.id)
    expect(seen).toEqual([forAnn.headers.get('x-thread-id'), own.id])
    expect((await ann('GET', `/v1/sandboxes/${id}`)).body.threads).toHaveLength(2)
    expect(codeOf(await ann('GET', `/v1/sandboxes/${id}/threads/${ofTeam.id}`))).toBe('404 thread_not_found')
    expect((await app.ask('GET', `/v1/sandboxes/${id}/threads`)).body).toHaveLength(3)
  })

  test('cannot say it is another', async () => {
    const chat = await app.request('POST', '/v1/chat/mine', {
      key: await tokenFor({ userId: 'ann' }),
      body: { externalUserId: 'bob', ...message },
    })
    await readChunks(chat)
    const path = `/v1/sandboxes/${chat.headers.get('x-sandbox-id')}/threads/${chat.headers.get('x-thread-id')}`
    expect((await ann('GET', path)).status).toBe(200)
    expect((await bob('GET', path)).status).toBe(404)
  })

  test('neither resumes nor cancels what others run in its sandbox', async () => {
    const { id } = (await ann('POST', '/v1/sandboxes', { agent: 'mine' })).body
    const body = {
      sandboxId: id,
      mode: 'background',
      messages: [{ role: 'user', parts: [{ type: 'text', text: '/slow 1000' }] }],
    }
    const { threadId } = (await app.ask('POST', '/v1/chat/mine', body)).body
    expect((await ann('GET', `/v1/chat/mine/${id}/stream`)).status).toBe(204)
    expect((await ann('DELETE', `/v1/chat/mine/${id}/stream`)).body).toEqual({ status: 'idle', runs: [] })
    expect(codeOf(await ann('GET', `/v1/chat/mine/${id}/stream?threadId=${threadId}`))).toBe('404 thread_not_found')
    expect((await app.ask('DELETE', `/v1/chat/mine/${id}/stream`)).body.status).toBe('cancelled')
  })

  test('resumes its own run after the end, among many threads, and no other user’s', async () => {
    const { id } = (await ann('POST', '/v1/sandboxes', { agent: 'mine' })).body
    for (let count = 0; count < 20; count++) await ann('POST', `/v1/sandboxes/${id}/threads`, { name: 'quiet' })
    const chatAs = async (externalUserId: string) => {
      const answer = await app.request('POST', '/v1/chat/mine', { body: { sandboxId: id, externalUserId, ...message } })
      await readChunks(answer)
      return answer.headers.get('x-run-id')
    }
    const [own, foreign] = [await chatAs('ann'), await chatAs('bob')]
    const key = await tokenFor({ userId: 'ann' })
    const resume = (runId: string | null) =>
      app.request('GET', `/v1/chat/mine/${id}/stream`, { key, headers: { 'last-event-id': `${runId}/1` } })
    const resumed = await resume(own)
    expect(resumed.headers.get('x-run-id')).toBe(own)
    expect((await readChunks(resumed)).length).toBeGreaterThan(2)
    expect((await resume(foreign)).status).toBe(204)
  })

  test('cancels its own runs and queues in a shared sandbox, and leaves those of others', async () => {
    const { id } = (await ann('POST', '/v1/sandboxes', { agent: 'mine' })).body
    const slow = { messages: [{ role: 'user', parts: [{ type: 'text', text: '/slow 1000' }] }], mode: 'background' }
    const begin = async (externalUserId: string) => {
      const { threadId } = (await app.ask('POST', '/v1/chat/mine', { sandboxId: id, externalUserId, ...slow })).body
      const waiting = { sandboxId: id, threadId, whenBusy: 'queue', ...message }
      expect((await app.ask('POST', '/v1/chat/mine', waiting)).status).toBe(202)
      return threadId
    }
    const [own, foreign] = [await begin('ann'), await begin('bob')]
    const stopped = async (threadId: string) =>
      (await app.ask('GET', `/v1/sandboxes/${id}/threads/${threadId}/queue`)).body.isStopped
    const { status, runs } = (await ann('DELETE', `/v1/chat/mine/${id}/stream`)).body
    expect([status, runs.map((run: any) => run.threadId)]).toEqual(['cancelled', [own]])
    expect([await stopped(own), await stopped(foreign)]).toEqual([true, false])
    const rest = (await app.ask('DELETE', `/v1/chat/mine/${id}/stream`)).body
    expect(rest.runs.map((run: any) => run.threadId)).toEqual([foreign])
  })
})
