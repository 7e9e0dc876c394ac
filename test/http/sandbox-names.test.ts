import { expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'

const app = useApp()

const find = async (name: string, key = app.key) =>
  (await app.ask('GET', `/v1/sandboxes?name=${name}`, undefined, { key })).body.sandboxes

test('a sandbox is found by the name that it was made with, until it is deleted', async () => {
  const id = await app.sandbox({ name: 'session-1' })
  await app.sandbox({ name: 'session-10' })
  expect(await find('session-1')).toMatchObject([{ id, name: 'session-1' }])
  expect((await app.ask('GET', `/v1/sandboxes/${id}`)).body.name).toBe('session-1')
  expect(await find('session-2')).toEqual([])
  await app.ask('DELETE', `/v1/sandboxes/${id}`)
  expect(await find('session-1')).toEqual([])
  expect(await find('session-1', app.foreignKey)).toEqual([])
})

test('a team has a name once, however many ask for it at once', async () => {
  const create = () => app.ask('POST', '/v1/sandboxes', { agent: 'echo', name: 'once' })
  const before = app.environmentIds.length
  const answers = await Promise.all([create(), create(), create()])
  expect(answers.map(codeOf).sort()).toEqual(['201 undefined', '409 conflict', '409 conflict'])
  expect(codeOf(await create())).toBe('409 conflict')
  const made = app.environmentIds.slice(before)
  const kept = app.runtime.db.query('select environment_id as id from unfinished_environments').all() as {
    id: string
  }[]
  expect(kept.filter(({ id }) => made.includes(id))).toEqual([])
  expect(await find('once')).toHaveLength(1)
})

test('a sandbox of a snapshot takes a name too, a fork has none, and a token gives none', async () => {
  const id = await app.sandbox({ name: 'origin' })
  const { body: snapshot } = await app.ask('POST', `/v1/sandboxes/${id}/snapshots`, {})
  const create = (name: string, key = app.key) =>
    app.ask('POST', '/v1/sandboxes', { snapshot: snapshot.id, name }, { key })
  expect(codeOf(await create('origin'))).toBe('409 conflict')
  const { body: copy } = await create('copy')
  expect(await find('copy')).toMatchObject([{ id: copy.id }])
  const { body } = await app.ask('POST', `/v1/sandboxes/${id}/fork`, {})
  expect((await app.ask('GET', `/v1/sandboxes/${body.forks[0].sandbox.id}`)).body.name).toBeNull()
  const { token } = (await app.ask('POST', '/v1/tokens', { agent: 'echo' })).body
  const byToken = await app.ask('POST', '/v1/sandboxes', { agent: 'echo', name: 'mine' }, { key: token })
  expect(codeOf(byToken)).toBe('403 forbidden')
  for (const name of ['', 'a b', '.hidden', 'x'.repeat(129)]) {
    expect(codeOf(await app.ask('POST', '/v1/sandboxes', { agent: 'echo', name }))).toBe('400 invalid_request')
  }
})
