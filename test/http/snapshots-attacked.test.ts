import { describe, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { findTeam, saveTeamLimits } from '../../src/db/teams.ts'
import type { Scope } from '../../src/model/scope.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { createSecretHost } from '../support/secret-host.ts'

const VALUE = `ghp_${'a1B2'.repeat(9)}`
const host = createSecretHost(({ 'x-token': token }) => (token === VALUE ? 'known' : 'unknown'))
const app = useApp(['--network-private', '127.0.0.0/8'], {}, () => [], host.reach)

const keyFor = (...scopes: Scope[]) => createKey(app.runtime.db, { team: 'default', name: 'scoped', scopes }).key
const fork = (id: string, fields: object = {}, key = app.key) =>
  app.ask('POST', `/v1/sandboxes/${id}/fork`, fields, { key })
const take = (id: string, fields: object = {}, key = app.key) =>
  app.ask('POST', `/v1/sandboxes/${id}/snapshots`, fields, { key })
const begin = (fields: object, key = app.key) => app.ask('POST', '/v1/sandboxes', fields, { key })
const threadOf = async (id: string, key = app.key): Promise<string> =>
  (await app.ask('POST', `/v1/sandboxes/${id}/threads`, { name: 'own' }, { key })).body.id

describe('another team', () => {
  test('neither forks, snapshots, lists nor removes what is not its own, nor goes on with a thread of it: regression', async () => {
    const id = await app.sandbox()
    const threadId = await threadOf(id)
    const { id: snapshot } = (await take(id, { name: 'mine' })).body
    expect(codeOf(await fork(id, {}, app.foreignKey))).toBe('404 sandbox_not_found')
    expect(codeOf(await take(id, {}, app.foreignKey))).toBe('404 sandbox_not_found')
    for (const each of [snapshot, 'mine']) {
      expect(codeOf(await begin({ snapshot: each }, app.foreignKey))).toBe('404 not_found')
      expect(codeOf(await app.ask('DELETE', `/v1/snapshots/${each}`, undefined, { key: app.foreignKey }))).toBe(
        '404 not_found',
      )
    }
    expect((await app.ask('GET', '/v1/snapshots', undefined, { key: app.foreignKey })).body.snapshots).toEqual([])
    const theirs = (await begin({ agent: 'echo' }, app.foreignKey)).body.id
    expect(codeOf(await fork(theirs, { threadId }, app.foreignKey))).toBe('404 thread_not_found')
    // Nothing was made before it was refused.
    expect((await app.ask('GET', '/v1/sandboxes', undefined, { key: app.foreignKey })).body.sandboxes).toHaveLength(1)
    expect((await begin({ snapshot: 'mine' })).status).toBe(201)
  })

  test('has a name of its own for a snapshot, whatever another one calls its: regression', async () => {
    const theirs = (await begin({ agent: 'echo' }, app.foreignKey)).body.id
    await app.ask('POST', `/v1/sandboxes/${theirs}/exec`, { command: 'echo theirs > whose' }, { key: app.foreignKey })
    expect((await take(theirs, { name: 'same' }, app.foreignKey)).status).toBe(201)
    const id = await app.sandbox()
    await app.shell(id, 'echo ours > whose')
    await take(id, { name: 'same' })
    const { body } = await begin({ snapshot: 'same' })
    expect(await app.shell(body.id, 'cat whose')).toBe('ours\n')
  })
})

test('a fork does not go on with a thread of another sandbox of the same team: regression', async () => {
  const [id, other] = [await app.sandbox(), await app.sandbox()]
  const threadId = await threadOf(other)
  expect(codeOf(await fork(id, { threadId }))).toBe('404 thread_not_found')
  expect(codeOf(await fork(id, { threadId, messageId: 'x' }))).toBe('404 thread_not_found')
})

test("a browser's token neither forks, nor snapshots, nor begins with a snapshot, also of its own sandbox: regression", async () => {
  const { token } = (await app.ask('POST', '/v1/tokens', { userId: 'ann' })).body
  const { id } = (await begin({ agent: 'echo' }, token)).body
  const { id: snapshot } = (await take(id)).body
  expect(codeOf(await fork(id, {}, token))).toBe('403 forbidden')
  expect(codeOf(await take(id, {}, token))).toBe('403 forbidden')
  expect(codeOf(await begin({ snapshot }, token))).toBe('403 forbidden')
  expect(codeOf(await app.ask('DELETE', `/v1/snapshots/${snapshot}`, undefined, { key: token }))).toBe('403 forbidden')
})

describe('of a sandbox with secrets', () => {
  const binding = { secret: 'API', hosts: host.hosts, as: { env: 'API_TOKEN' } }
  const origin = async () => {
    await app.ask('PUT', '/v1/secrets/API', { value: VALUE })
    return await app.sandbox({ secrets: [binding], networkAllowOut: host.networkAllowOut })
  }

  test('a key without the scope begins with the bindings as they are, and binds none to hosts of its own: regression', async () => {
    const id = await origin()
    const { id: snapshot } = (await take(id)).body
    const key = keyFor('sandboxes')
    const same = await begin({ snapshot }, key)
    expect(same.status).toBe(201)
    expect((await app.ask('GET', `/v1/sandboxes/${same.body.id}`)).body.secrets).toEqual([binding])
    const secrets = [{ ...binding, hosts: ['evil.example.com'] }]
    expect(codeOf(await begin({ snapshot, secrets }, key))).toBe('403 forbidden')
    expect(codeOf(await app.ask('PATCH', `/v1/sandboxes/${same.body.id}`, { secrets }, { key }))).toBe('403 forbidden')
  })

  test("a fork cannot use its origin's placeholder, nor the origin the fork's: regression", async () => {
    const id = await origin()
    const other = (await fork(id)).body.forks[0].sandbox.id
    const placeholder = (each: string) => app.shell(each, 'printf %s "$API_TOKEN"')
    const ask = (each: string, token: string) => app.shell(each, `curl -sS -H 'x-token: ${token}' ${host.origin}`)
    const [own, forked] = [await placeholder(id), await placeholder(other)]
    expect([await ask(id, own), await ask(other, forked)]).toEqual(['known', 'known'])
    expect([await ask(id, forked), await ask(other, own)]).toEqual(['unknown', 'unknown'])
  })

  test('what is unbound from a sandbox is not bound in its forks, and a removed secret in none: regression', async () => {
    const id = await origin()
    const { id: before } = (await take(id)).body
    await app.ask('PATCH', `/v1/sandboxes/${id}`, { secrets: [] })
    const other = (await fork(id)).body.forks[0].sandbox.id
    expect((await app.ask('GET', `/v1/sandboxes/${other}`)).body.secrets).toEqual([])
    expect(await app.shell(other, 'echo "<$API_TOKEN>"')).toBe('<>\n')
    await app.ask('DELETE', '/v1/secrets/API')
    const copy = (await begin({ snapshot: before })).body.id
    expect(
      await app.shell(copy, `curl -s -o /dev/null -w '%{http_code}' -H "x-token: $API_TOKEN" ${host.origin}`),
    ).toBe('502')
  })
})

test('a team whose disk is full neither takes snapshots, nor forks, nor begins with one, until it has removed something: regression', async () => {
  const limit = (disk?: string) =>
    app.beside(db => saveTeamLimits(db, findTeam(db, 'default')!.id, disk === undefined ? {} : { 'team.disk': disk }))
  const id = await app.sandbox()
  const { id: kept } = (await take(id, { name: 'kept' })).body
  await app.shell(id, 'head -c 30000000 /dev/urandom > big')
  // The snapshot alone is too much.
  const { id: large } = (await take(id)).body
  const { diskBytes } = (await app.ask('GET', '/v1/snapshots')).body.snapshots.find(
    (each: { id: string }) => each.id === large,
  )
  await app.shell(id, 'rm big')
  limit(String(Math.floor(diskBytes / 1024 / 1024)))
  try {
    const refusals = [await take(id), await fork(id), await begin({ snapshot: kept })]
    expect(refusals.map(({ status, body }) => [status, body.error?.limit])).toEqual(
      refusals.map(() => [429, 'team.disk']),
    )
    expect((await app.ask('DELETE', `/v1/snapshots/${large}`)).status).toBe(204)
    limit(String(Math.ceil(diskBytes / 1024 / 1024) * 2))
    expect((await begin({ snapshot: kept })).status).toBe(201)
  } finally {
    limit()
  }
})
