import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { codeOf } from '../support/client.ts'
import { leftovers } from '../support/leftovers.ts'
import { command, useServer } from '../support/server.ts'

const server = useServer({ flags: ['--spares', '0'] })
const threadbox = (...args: string[]) => command([...args, '--data-dir', server.dataDirectory])

const createSandbox = (key: string, fields: object = {}) =>
  server.ask('POST', '/v1/sandboxes', { agent: 'echo', ...fields }, { key })
const keyOf = async (team: string) => (await threadbox('keys', 'create', '--team', team, '--quiet')).stdout.trim()

test('a team has as many sandboxes as it may have, also while they are made, and another has its own', async () => {
  await threadbox('teams', 'create', 'small', '--limit', 'sandboxes=2')
  const key = await keyOf('small')
  const made = await Promise.all([createSandbox(key), createSandbox(key), createSandbox(key)])
  expect(made.map(({ status }) => status).sort()).toEqual([201, 201, 429])
  const refused = await createSandbox(key)
  const message = 'This team has 2 sandboxes, and can have no more: remove some.'
  expect(refused.body).toEqual({ error: { code: 'rate_limit_exceeded', message, limit: 'team.sandboxes' }, message })
  expect(refused.headers.get('retry-after')).toBe('60')
  expect((await createSandbox(server.key)).status).toBe(201)

  // Changed while the server runs.
  expect((await threadbox('teams', 'limit', 'small', 'sandboxes=3')).stdout).toBe('team.sandboxes=3\n')
  expect((await createSandbox(key)).status).toBe(201)
  expect((await createSandbox(key)).status).toBe(429)
  const { id } = made.find(({ status }) => status === 201)?.body ?? {}
  await server.ask('DELETE', `/v1/sandboxes/${id}`, undefined, { key })
  expect((await createSandbox(key)).status).toBe(201)
  // A create that fails gives its place back.
  expect(
    (
      await server.ask('DELETE', `/v1/sandboxes/${made.findLast(({ status }) => status === 201)?.body.id}`, undefined, {
        key,
      })
    ).status,
  ).toBe(204)
  expect(codeOf(await createSandbox(key, { setup: ['exit 3'] }))).toBe('400 setup_failed')
  expect((await createSandbox(key)).status).toBe(201)
  expect((await threadbox('teams', 'remove', 'small', '--with-everything')).code).toBe(0)
  const kept = JSON.parse((await threadbox('audit', 'list', '--action', 'team', '--json')).stdout)
  const team = { teamId: expect.stringMatching(/^team_/), team: 'small' }
  expect(kept).toMatchObject([
    { action: 'team.removed', actor: { command: 'teams remove' }, target: team, detail: { sandboxes: 3 } },
    { action: 'team.limited', actor: { command: 'teams limit' }, target: team, detail: { 'team.sandboxes': '3' } },
    { action: 'team.created', actor: { command: 'teams create' }, target: team, detail: { 'team.sandboxes': '2' } },
  ])
})

test('a team is removed with everything while the server runs, and its name is free at once', async () => {
  const key = await keyOf('gone')
  const [one, two] = await Promise.all([createSandbox(key), createSandbox(key)])
  const chat = { sandboxId: one.body.id, messages: [{ role: 'user', parts: [{ type: 'text', text: '/slow 10000' }] }] }
  expect((await server.ask('POST', '/v1/chat/echo', { ...chat, mode: 'background' }, { key })).status).toBe(202)
  const environments = [one.body.sandboxId, two.body.sandboxId]

  const refused = await threadbox('teams', 'remove', 'gone')
  expect([refused.code, refused.stderr]).toEqual([
    2,
    'threadbox: gone has 2 sandboxes, 1 threads, 1 keys and 0 agents: remove them first, or say --with-everything.\n',
  ])
  expect((await server.ask('GET', '/v1/sandboxes', undefined, { key })).body.sandboxes.length).toBe(2)

  const removed = await threadbox('teams', 'remove', 'gone', '--with-everything')
  expect(removed.stdout).toEndWith('gone is removed, with 2 sandboxes, 1 threads, 1 keys and 0 agents.\n')
  expect((await server.ask('GET', '/v1/sandboxes', undefined, { key })).status).toBe(401)
  expect(await leftovers(...environments)).toEqual([])
  for (const id of environments) expect(existsSync(`${server.dataDirectory}/sandboxes/${id}`)).toBe(false)
  const { stdout } = await threadbox('teams', 'list', '--quiet')
  expect(stdout).not.toContain('gone')
  const again = await keyOf('gone')
  expect((await server.ask('GET', '/v1/sandboxes', undefined, { key: again })).body.sandboxes).toEqual([])
})

test('an empty team is removed at once; the team default and an unknown one are not', async () => {
  await threadbox('teams', 'create', 'empty')
  expect((await threadbox('teams', 'create', 'empty')).stderr).toBe('threadbox: There is a team empty.\n')
  expect((await threadbox('teams', 'remove', 'empty')).stdout).toBe('empty is removed.\n')
  expect((await threadbox('teams', 'remove', 'empty')).stderr).toBe('threadbox: There is no team empty.\n')
  const refused = await threadbox('teams', 'remove', 'default', '--with-everything')
  expect(refused.stderr).toBe('threadbox: The team default cannot be removed.\n')
  expect((await threadbox('teams', 'limit', 'default', 'requests=5/s')).stderr).toContain('no such limit: requests')
})
