import { beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { createRequestRows } from '../../src/core/audit/request-rows.ts'
import { verifyAudit } from '../../src/core/audit/verify.ts'
import type { AuditFact } from '../../src/model/audit.ts'
import { useApp } from '../support/app.ts'
import { startChat } from '../support/chat.ts'
import { codeOf } from '../support/client.ts'
import { until } from '../support/until.ts'

const app = useApp(['--spares', '0', '--network', 'none'])
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})

const rows = async (action: string): Promise<any[]> => {
  await app.runtime.audit.settled()
  return (await app.ask('GET', `/v1/audit?action=${action}&limit=999`)).body.rows
}
const sha = (text: string) => createHash('sha256').update(text).digest('hex')
const actor = { requestId: expect.stringMatching(/^req_/), keyId: expect.any(String), address: '127.0.0.1' }

test('a command is kept by its hash, its caller and how it ended', async () => {
  const command = 'sleep 0.2; exit 3'
  const { headers } = await app.request('POST', `/v1/sandboxes/${id}/exec`, { body: { command } })
  const requestId = headers.get('x-request-id')
  const [ended] = await rows('exec.ended')
  const [started] = await rows('exec.started')
  expect(started).toMatchObject({
    actor: { ...actor, requestId },
    target: { sandboxId: id, execId: expect.stringMatching(/^exec_/) },
    detail: { commandSha256: sha(command) },
  })
  expect(ended).toMatchObject({ actor: { requestId }, outcome: 'exited', detail: { exitCode: 3 } })
  expect(ended.target).toEqual(started.target)
  expect(ended.seq).toBeGreaterThan(started.seq)
})

test('a command that ends before the row of its begin is written has one row, with both times', async () => {
  const { observers, audit } = app.runtime
  await audit.settled()
  const { teamId } = app.runtime.db.query<any, []>('select team_id as teamId from sandboxes limit 1').get()!
  const about = { teamId, sandboxId: id, cause: {} }
  const begin = (execId: string) =>
    observers.observe({ type: 'exec.started', ...about, execId, commandSha256: sha(execId) })
  const end = (execId: string) =>
    observers.observe({ type: 'exec.ended', ...about, execId, outcome: 'exited', exitCode: 4, durationMs: 2 })
  begin('exec_long')
  await audit.settled()
  begin('exec_short')
  begin('exec_other')
  end('exec_short')
  end('exec_long')
  await audit.settled()
  const found = (await rows('exec')).slice(0, 4)
  expect(found.map(({ action, target }) => [action, target.execId])).toEqual([
    ['exec.ended', 'exec_long'],
    ['exec.ended', 'exec_short'],
    ['exec.started', 'exec_other'],
    ['exec.started', 'exec_long'],
  ])
  const [, { time, detail }] = found
  expect(detail).toEqual({
    ...{ commandSha256: sha('exec_short'), exitCode: 4, durationMs: 2 },
    startedAt: expect.stringMatching(/Z$/),
  })
  expect(detail.startedAt <= time).toBe(true)
  expect(found[0].detail).toEqual({ exitCode: 4, durationMs: 2 })
})

test('each way to change a file is kept, without what is in it', async () => {
  const files = `/v1/sandboxes/${id}/files`
  const content = 'swordfish'
  await app.ask('POST', files, { path: '/home/user/a', content })
  await app.ask('POST', files, { files: { '/home/user/b': content, '/home/user/c': content } })
  await app.request('POST', `${files}?path=/home/user/raw&format=blob`, { body: content })
  await app.ask('POST', `${files}/mkdir`, { path: '/home/user/directory' })
  await app.ask('POST', `${files}/rename`, { oldPath: '/home/user/a', newPath: '/home/user/d' })
  await app.ask('DELETE', `${files}?path=/home/user/d`)
  expect((await app.ask('POST', files, { path: '/proc/no', content })).status).not.toBe(200)
  await app.ask('POST', `/v1/sandboxes/${id}/git/clone`, { url: 'http://user:swordfish@127.0.0.1:1/x' })
  const found = (await rows('file'))
    .reverse()
    .map(({ action, target: { path, toPath }, outcome }) => [action, toPath ?? path, outcome])
  expect(found).toEqual([
    ['file.write', '/home/user/a', 'done'],
    ['file.write', '/home/user/b', 'done'],
    ['file.write', '/home/user/c', 'done'],
    ['file.write', '/home/user/raw', 'done'],
    ['file.makeDirectory', '/home/user/directory', 'done'],
    ['file.rename', '/home/user/d', 'done'],
    ['file.remove', '/home/user/d', 'done'],
    ['file.write', '/proc/no', 'failed'],
    ['file.makeDirectory', '/home/user', 'done'],
    ['file.clone', '/home/user/repo', 'failed'],
  ])
  expect((await rows('file.write')).find(({ target }) => target.path.endsWith('/raw'))).toMatchObject({
    actor,
    detail: { sizeBytes: '"swordfish"'.length },
  })
  expect(JSON.stringify(await rows('file'))).not.toContain('swordfish')
})

test('processes, runs, and what an agent does in one are kept', async () => {
  await app.ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'sleep 0' })
  expect((await rows('process.started'))[0]).toMatchObject({ actor, detail: { commandSha256: sha('sleep 0') } })
  const chat = await startChat(app, '$ echo swordfish', { sandboxId: id })
  await chat.response.text()
  const { runId, threadId } = chat
  const [started] = await rows('run.started')
  expect(started).toMatchObject({ actor, target: { runId, threadId, sandboxId: id, agent: 'echo' } })
  const [ended, begun = ended] = (await rows('exec')).filter(({ target }) => target.runId === runId)
  expect(begun).toMatchObject({ actor, detail: { commandSha256: expect.any(String) } })
  expect(ended).toMatchObject({ action: 'exec.ended', outcome: 'exited', target: { execId: begun.target.execId } })
  expect((await rows('run.ended'))[0]).toMatchObject({ target: { runId }, outcome: 'completed' })
})

test('what the proxy decides is kept, the first of its kind in a minute and how many more', async () => {
  await app.exec(id, 'for each in 1 2 3; do curl -sm 5 http://example.com:81/; done; curl -sm 5 http://192.0.2.1/')
  const decided = (await rows('network.decided')).map(({ target, outcome, detail: { host, port } }) => ({
    sandboxId: target.sandboxId,
    outcome,
    host,
    port,
  }))
  expect(decided).toEqual([
    { sandboxId: id, outcome: 'refused', host: '192.0.2.1', port: 80 },
    { sandboxId: id, outcome: 'refused', host: 'example.com', port: 81 },
  ])
})

test('keys, tokens and sessions are kept, and no secret of them', async () => {
  const made = (await app.ask('POST', '/v1/keys', { name: 'short', scopes: ['read'] })).body
  const session = await app.request('POST', '/v1/session', {
    ...{ key: null, body: { key: made.key }, headers: { origin: app.url } },
  })
  expect(session.status).toBe(201)
  const { token } = (await app.ask('POST', '/v1/tokens', { userId: 'bob' })).body
  await app.ask('GET', '/v1/sandboxes', undefined, { key: made.key })
  await app.ask('GET', '/v1/sandboxes', undefined, { key: made.key })
  await app.ask('DELETE', `/v1/sessions/${((await session.json()) as { id: string }).id}`)
  await app.ask('DELETE', `/v1/keys/${made.id}`)
  expect((await rows('key.created'))[0]).toMatchObject({
    actor,
    target: { keyId: made.id },
    detail: { scopes: ['read'] },
  })
  expect((await rows('key.used')).filter(each => each.actor.keyId === made.id).length).toBe(1)
  expect((await rows('session.created'))[0]).toMatchObject({ actor: { keyId: made.id, address: '127.0.0.1' } })
  expect((await rows('session.ended'))[0]).toMatchObject({ actor })
  expect((await rows('token.created'))[0]).toMatchObject({ actor, detail: { userId: 'bob' } })
  expect((await rows('key.revoked'))[0]).toMatchObject({ target: { keyId: made.id } })
  const all = JSON.stringify((await app.ask('GET', '/v1/audit?limit=999')).body)
  for (const secret of [made.key, token]) expect(all).not.toContain(secret)
})

test('changes of agents are kept, and names of variables alone', async () => {
  app.agent('mine')
  const { revision, definition } = (await app.ask('GET', '/v1/agents/mine/definition')).body
  await app.ask('PUT', '/v1/agents/mine/definition', { revision, definition: { ...definition, name: 'Other' } })
  await app.ask('PUT', '/v1/agents/mine/env', { key: 'SECRET', value: 'swordfish' })
  await app.ask('POST', '/v1/agents/mine/rollback', { version: 1 })
  await app.ask('DELETE', '/v1/agents/mine')
  const found = [...(await rows('agent')), ...(await rows('variable'))].map(({ action, target }) => [
    action,
    target.name,
  ])
  expect(found).toEqual([
    ['agent.removed', undefined],
    ['agent.rolled-back', undefined],
    ['agent.edited', undefined],
    ['variable.set', 'SECRET'],
  ])
})

test('a change that has no row of its own is kept as its request, a refused one too', async () => {
  const wish = { url: 'https://example.com', events: ['run.ended'] }
  await app.ask('POST', '/v1/webhooks', wish)
  await app.ask('DELETE', '/v1/webhooks/none')
  const found = (await rows('request')).map(({ outcome, detail: { method, route, status } }) => [
    method,
    route,
    status,
    outcome,
  ])
  expect(found.slice(0, 2)).toEqual([
    ['DELETE', '/v1/webhooks/:webhookId', 404, 'refused'],
    ['POST', '/v1/webhooks', 201, 'done'],
  ])
  expect(found.some(([, route]) => String(route).includes('/exec'))).toBe(false)
})

test('what is refused again and again in a minute is counted, so that no key fills the disk by it: regression', async () => {
  const { key } = (await app.ask('POST', '/v1/keys', { name: 'reader', scopes: ['read'] })).body
  const refuse = () => app.ask('POST', '/v1/schedules/none/run', undefined, { key })
  const before = (await rows('request')).length
  expect((await refuse()).status).toBe(403)
  for (let round = 0; round < 30; round++) await refuse()
  // A minute may have ended meanwhile.
  expect((await rows('request')).length - before).toBeLessThanOrEqual(4)
})

test('at the end of a minute the refusals beyond the first are counted by key and kind', () => {
  const kept: AuditFact[] = []
  const requests = createRequestRows(row => kept.push(row))
  const refused = { type: 'request.ended', time: '2030-01-01T00:00:00.000Z', teamId: 'team_1', method: 'POST' } as const
  const request = (keyId: string, status: number) =>
    requests.ended({ ...refused, route: '/v1/a', status, durationMs: 1, cause: { requestId: 'req_1', keyId } }, false)
  for (const status of [403, 403, 403, 404, 201, 201, 500, 500]) request('key_1', status)
  request('key_2', 403)
  requests.close()
  const shown = kept.map(({ action, actor, detail }) => [action, actor.keyId, detail?.status, detail?.more])
  expect(shown.filter(([action]) => action !== 'key.used')).toEqual([
    ...[403, 404, 201, 201, 500, 500].map(status => ['request', 'key_1', status, undefined]),
    ['request', 'key_2', 403, undefined],
    ['request.more', 'key_1', 403, 2],
  ])
})

test('sandboxes are kept from their beginning to their end', async () => {
  const other = await app.sandbox({ envs: { SECRET: 'swordfish' } })
  await app.ask('POST', `/v1/sandboxes/${other}/stop`)
  await app.ask('DELETE', `/v1/sandboxes/${other}`)
  const found = (await rows('sandbox')).filter(({ target }) => target.sandboxId === other)
  expect(found.map(({ action }) => action)).toEqual(['sandbox.deleted', 'sandbox.stopped', 'sandbox.created'])
  expect(codeOf(await app.ask('POST', '/v1/sandboxes', { agent: 'none' }))).toBe('404 agent_not_found')
  expect((await rows('sandbox.created'))[0]).toMatchObject({ outcome: 'failed', detail: { code: 'agent_not_found' } })
})

describe('the list', () => {
  test('has pages, and another team sees its own alone', async () => {
    const first = (await app.ask('GET', '/v1/audit?limit=2')).body
    const second = (await app.ask('GET', `/v1/audit?limit=2&before=${first.nextBefore}`)).body
    expect(second.rows[0].seq).toBeLessThan(first.rows[1].seq)
    const { body } = await app.ask('GET', '/v1/audit', undefined, { key: app.foreignKey })
    expect(body.rows.map((row: any) => row.action)).toEqual([])
    await app.runtime.audit.settled()
    const again = (await app.ask('GET', '/v1/audit', undefined, { key: app.foreignKey })).body
    expect(again.rows.map((row: any) => row.action)).toEqual(['key.used'])
  })

  test('is refused to a token, and for what is no time', async () => {
    const { token } = (await app.ask('POST', '/v1/tokens', {})).body
    expect(codeOf(await app.ask('GET', '/v1/audit', undefined, { key: token }))).toBe('403 forbidden')
    expect(codeOf(await app.ask('GET', '/v1/audit?since=x'))).toBe('400 invalid_request')
  })
})

test('the chain is whole after all of this', async () => {
  await app.runtime.audit.settled()
  expect(verifyAudit(app.runtime.db, []).problems).toEqual([])
})

test('what is done while the database takes no rows is kept when it does', async () => {
  const { db } = app.runtime
  await app.runtime.audit.settled()
  db.run("create trigger no_rows before insert on audit begin select raise(abort, 'the disk is full'); end")
  const path = `/v1/sandboxes/${id}/files`
  const write = (name: string) => app.ask('POST', path, { path: `/home/user/${name}`, content: '' })
  expect((await write('first')).status).toBe(200)
  expect((await write('second')).status).toBe(200)
  // A change of the database and its row are one.
  expect((await app.ask('POST', '/v1/keys', { name: 'unseen' })).status).toBe(500)
  await until(() => app.log.some(line => line.startsWith('audit: rows cannot be stored')))
  db.run('drop trigger no_rows')
  await app.runtime.audit.settled()
  const paths = (await rows('file.write')).map(({ target }) => target.path)
  expect(paths.slice(0, 2)).toEqual(['/home/user/second', '/home/user/first'])
  expect(app.log.filter(line => line.startsWith('audit: rows cannot be stored')).length).toBe(1)
  expect((await app.ask('GET', '/v1/keys')).body.keys.some(({ name }: any) => name === 'unseen')).toBe(false)
})

test('what ends something is done while the database takes no rows, and its rows wait: regression', async () => {
  const { db, audit } = app.runtime
  const [stopped, deleted] = [await app.sandbox(), await app.sandbox()]
  const processes = `/v1/sandboxes/${stopped}/processes`
  const [first, second] = [
    (await app.ask('POST', processes, { command: 'sleep 1000' })).body.pid,
    (await app.ask('POST', processes, { command: 'sleep 1000' })).body.pid,
  ]
  const key = (await app.ask('POST', '/v1/keys', { name: 'to revoke' })).body
  const chat = await startChat(app, '$ sleep 1000', { sandboxId: stopped })
  await audit.settled()
  db.run("create trigger no_rows before insert on audit begin select raise(abort, 'the disk is full'); end")
  const statuses = [
    await app.ask('POST', `${processes}/${first}/signal`, { signal: 'KILL' }),
    await app.ask('DELETE', `${processes}/${second}`),
    await app.ask('DELETE', `/v1/chat/echo/${stopped}/stream`),
    await app.ask('DELETE', `/v1/keys/${key.id}`),
    await app.ask('POST', `/v1/sandboxes/${stopped}/stop`),
    await app.ask('DELETE', `/v1/sandboxes/${deleted}`),
  ].map(({ status }) => status)
  expect(statuses).toEqual([204, 204, 200, 204, 200, 204])
  await chat.response.text()
  expect((await app.ask('GET', '/v1/me', undefined, { key: key.key })).status).toBe(401)
  db.run('drop trigger no_rows')
  await audit.settled()
  expect((await rows('key.revoked'))[0]).toMatchObject({ actor, target: { keyId: key.id } })
  expect((await rows('sandbox.stopped'))[0]).toMatchObject({ actor, target: { sandboxId: stopped } })
  expect((await rows('sandbox.deleted'))[0]).toMatchObject({ actor, target: { sandboxId: deleted } })
  expect((await rows('run.ended'))[0]).toMatchObject({ target: { runId: chat.runId }, outcome: 'cancelled' })
  const requests = (await rows('request')).map(({ detail }) => `${detail.method} ${detail.route}`)
  expect(requests).toContain('POST /v1/sandboxes/:sandboxId/processes/:pid/signal')
  expect(verifyAudit(db, []).problems).toEqual([])
})
