import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createKey } from '../../src/core/access/keys.ts'
import { closeTeam } from '../../src/db/remove-team.ts'
import { ensureTeam } from '../../src/db/teams.ts'
import type { Scope } from '../../src/model/scope.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { until } from '../support/until.ts'

const app = useApp()

const TOKEN = `ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)}`
const github = {
  secret: 'GITHUB',
  hosts: ['github.com', '*.github.com'],
  as: { header: 'authorization', format: 'Bearer {}' },
}
const inVariable = { secret: 'GITHUB', hosts: ['github.com'], as: { env: 'GITHUB_TOKEN' } }

const set = (name: string, value: unknown, key = app.key) => app.ask('PUT', `/v1/secrets/${name}`, { value }, { key })
const names = async (key = app.key) =>
  (await app.ask('GET', '/v1/secrets', undefined, { key })).body.secrets.map(({ name }: { name: string }) => name)
const keyFor = (...wanted: Scope[]) =>
  createKey(app.runtime.db, { team: 'default', name: 'scoped', scopes: wanted }).key
const create = (secrets: unknown, fields: object = {}, key = app.key) =>
  app.ask('POST', '/v1/sandboxes', { agent: 'echo', secrets, ...fields }, { key })
const boundIn = (environmentId: string) => app.runtime.networks.secretsOf(environmentId)

test('a secret is set, listed by its name, set anew and removed', async () => {
  const first = await set('A', 'value-of-a')
  expect(first.status).toBe(200)
  expect(first.body).toEqual({ name: 'A', createdAt: expect.any(String), updatedAt: expect.any(String) })
  const again = await set('A', 'another value')
  expect(again.body.createdAt).toBe(first.body.createdAt)
  expect((await app.ask('GET', '/v1/secrets')).body.secrets).toEqual([{ ...again.body, agents: [], sandboxes: 0 }])
  expect((await app.ask('DELETE', '/v1/secrets/A')).status).toBe(204)
  expect(await names()).toEqual([])
  expect(codeOf(await app.ask('DELETE', '/v1/secrets/A'))).toBe('404 not_found')
})

describe('no secret is', () => {
  const values: [string, unknown][] = [
    ['shorter than four characters', 'abc'],
    ['empty', ''],
    ['a number', 12_345_678],
    ['longer than 64 Ki characters', 'a'.repeat(65_537)],
    ['a text with U+0000', 'abc\0def'],
    ['half a surrogate pair', 'abcd\ud800'],
  ]
  test.each(values)('a value that is %s', async (_, value) => {
    expect(codeOf(await set('A', value))).toBe('400 invalid_request')
    expect(await names()).toEqual([])
  })

  test.each(['-a', '.', 'a b', 'a/b', 'ä', 'a'.repeat(101)])('one of the name %j', async name => {
    expect(codeOf(await set(encodeURIComponent(name), 'value'))).toMatch(/^4\d\d/)
    expect(await names()).toEqual([])
  })
})

test('an answer to a wrong value does not repeat it: regression', async () => {
  const wrong = 'sk-hidden\0hidden'
  expect(JSON.stringify((await set('A', wrong)).body)).not.toContain('hidden')
  expect(JSON.stringify((await set('A', [wrong])).body)).not.toContain('hidden')
  expect(app.log.join('\n')).not.toContain('hidden')
})

test('another team does not see, change, remove or bind it', async () => {
  await set('GITHUB', TOKEN)
  expect(await names(app.foreignKey)).toEqual([])
  const removed = await app.ask('DELETE', '/v1/secrets/GITHUB', undefined, { key: app.foreignKey })
  expect(codeOf(removed)).toBe('404 not_found')
  const bound = await create([github], {}, app.foreignKey)
  expect(codeOf(bound)).toBe('400 invalid_request')
  expect(bound.body.message).toContain('there is no secret GITHUB')
  await set('GITHUB', 'of the other team', app.foreignKey)
  const { sandboxId } = (await create([github], {}, app.foreignKey)).body
  expect(boundIn(sandboxId)[0]?.value()).toBe('of the other team')
  const own = (await create([github])).body
  expect(boundIn(own.sandboxId)[0]?.value()).toBe(TOKEN)
})

test('a token neither lists, sets, removes nor binds secrets: regression', async () => {
  await set('GITHUB', TOKEN)
  const { token: key } = (await app.ask('POST', '/v1/tokens', { userId: 'ann' })).body
  expect(codeOf(await app.ask('GET', '/v1/secrets', undefined, { key }))).toBe('403 forbidden')
  expect(codeOf(await set('GITHUB', 'changed', key))).toBe('403 forbidden')
  expect(codeOf(await app.ask('DELETE', '/v1/secrets/GITHUB', undefined, { key }))).toBe('403 forbidden')
  expect(codeOf(await create([github], {}, key))).toBe('403 forbidden')
  expect(await names()).toEqual(['GITHUB'])
  const own = (await app.ask('POST', '/v1/sandboxes', { agent: 'echo' }, { key })).body.id
  expect((await app.ask('GET', `/v1/sandboxes/${own}`, undefined, { key })).body.secrets).toBe(null)
})

test('a key without the scope binds nothing to hosts of its own: regression', async () => {
  await set('GITHUB', TOKEN)
  app.agent('bound', {}, { secrets: [github] })
  const elsewhere = { ...github, hosts: ['evil.example.com'] }
  const refused = await create([elsewhere], {}, keyFor('sandboxes'))
  expect([codeOf(refused), refused.body.message]).toEqual(['403 forbidden', expect.stringContaining('secrets')])
  expect((await create([elsewhere], {}, keyFor('sandboxes', 'secrets'))).status).toBe(201)
  // What an agent binds is the choice of the one who made it.
  expect((await create(undefined, { agent: 'bound' }, keyFor('sandboxes'))).status).toBe(201)
  const path = '/v1/agents/bound/definition'
  const { definition, revision } = (await app.ask('GET', path)).body
  const edit = (secrets: unknown, key: string) =>
    app.ask('PUT', path, { revision, definition: { ...definition, name: 'New', secrets } }, { key })
  expect(codeOf(await edit([elsewhere], keyFor('deploy')))).toBe('403 forbidden')
  expect(codeOf(await edit([github, elsewhere], keyFor('deploy')))).toBe('403 forbidden')
  expect((await edit([github], keyFor('deploy'))).status).toBe(200)
})

test('neither a rollback nor a deploy gives an agent back a binding that it lost, by a key without the scope: regression', async () => {
  await set('GITHUB', TOKEN)
  app.agent('turned', {}, { secrets: [github] })
  const path = '/v1/agents/turned/definition'
  const { definition, revision } = (await app.ask('GET', path)).body
  const { secrets: _, ...without } = definition
  expect((await app.ask('PUT', path, { revision, definition: without }, { key: keyFor('deploy') })).status).toBe(200)
  const back = (key: string) => app.ask('POST', '/v1/agents/turned/rollback', {}, { key })
  expect(codeOf(await back(keyFor('deploy')))).toBe('403 forbidden')
  expect((await app.ask('GET', path)).body.definition.secrets).toBeUndefined()
  expect((await back(keyFor('deploy', 'secrets'))).status).toBe(200)
  expect((await app.ask('GET', path)).body.definition.secrets).toEqual([github])
})

describe('a binding is refused', () => {
  const wrong: [string, object, string][] = [
    ['to an address', { hosts: ['203.0.113.5'] }, 'hosts.0'],
    ['to a range', { hosts: ['github.com', '10.0.0.0/8'] }, 'hosts.1'],
    ['to an IPv6 address', { hosts: ['[fd00::1]:443'] }, 'hosts.0'],
    ['to any host', { hosts: ['*'] }, 'hosts.0'],
    ['to a URL', { hosts: ['https://github.com'] }, 'hosts.0'],
    ['to no host', { hosts: [] }, 'hosts'],
    ['to a port that is none', { hosts: ['github.com:0'] }, 'hosts.0'],
    ['in no place', { as: {} }, 'as'],
    ['in two places', { as: { query: 'key', env: 'KEY' } }, 'as'],
    ['with a format of no header', { as: { query: 'key', format: 'Bearer {}' } }, 'as'],
    ['in an unknown place', { as: { cookie: 'a' } }, 'as'],
    ['with a header of two lines', { as: { header: 'x\r\nhost' } }, 'as'],
    ['in the header host', { as: { header: 'Host' } }, 'as'],
    ['in the header content-length', { as: { header: 'content-length' } }, 'as'],
    ['in the header transfer-encoding', { as: { header: 'Transfer-Encoding' } }, 'as'],
    ['in a header of the proxy', { as: { header: 'proxy-authorization' } }, 'as'],
    ['in a pseudo header', { as: { header: ':authority' } }, 'as'],
    ['with a format of two lines', { as: { header: 'a', format: 'a\r\nhost: {}' } }, 'as'],
    ['with a format without the value', { as: { header: 'a', format: 'Bearer' } }, 'as'],
    ['with a format that has it twice', { as: { header: 'a', format: '{}{}' } }, 'as'],
    ['with a user that has a colon', { as: { basic: { user: 'a:b' } } }, 'as'],
    ['in a variable of no name', { as: { env: 'A=B' } }, 'as'],
    ['for a method in small letters', { methods: ['get'] }, 'methods'],
    ['for a path with a query', { paths: ['/a?b'] }, 'paths'],
    ['for a path without its slash', { paths: ['repos'] }, 'paths'],
    ['of a field that is not known', { value: 'x' }, 'value'],
    ['of a secret that is not there', { secret: 'NONE' }, 'NONE'],
  ]
  test.each(wrong)('%s', async (_, change, field) => {
    await set('GITHUB', TOKEN)
    const { status, body } = await create([{ ...github, ...change }])
    expect([status, body.message]).toEqual([400, expect.stringContaining(field)])
  })

  test('when all are more than every connection can look at', async () => {
    const hosts = Array.from({ length: 100 }, (_, index) => `${'a'.repeat(60)}.${'b'.repeat(60)}.c${index}.example.com`)
    const { status, body } = await create([github, { ...github, hosts }, { ...github, hosts }, { ...github, hosts }])
    expect([status, body.message]).toEqual([400, expect.stringContaining('characters as JSON')])
  })

  test('when two secrets are for one variable', async () => {
    await set('OTHER', 'other value')
    const { status, body } = await create([inVariable, { ...inVariable, secret: 'OTHER' }])
    expect([status, body.message]).toEqual([400, expect.stringContaining('GITHUB_TOKEN')])
  })

  test('when the value does not fit, in words that do not repeat it: regression', async () => {
    await set('KEYFILE', 'line one\nline two\n')
    const places = [{ header: 'a' }, { env: 'A' }, { basic: { user: 'a' } }]
    for (const as of places) {
      const { status, body } = await create([{ secret: 'KEYFILE', hosts: ['github.com'], as }])
      expect([status, body.message]).toEqual([400, expect.stringContaining('KEYFILE does not fit')])
      expect(JSON.stringify(body)).not.toContain('line one')
    }
  })

  test('in an agent’s definition, by its field', async () => {
    app.agent('edited')
    const path = '/v1/agents/edited/definition'
    const { definition, revision } = (await app.ask('GET', path)).body
    const secrets = [{ ...github, hosts: ['10.0.0.1'] }]
    const { status, body } = await app.ask('PUT', path, { revision, definition: { ...definition, secrets } })
    expect([status, body.message]).toEqual([400, expect.stringContaining('secrets.0.hosts.0')])
  })
})

test('a sandbox has the bindings of its agent at the time, and of its request beside or in their place', async () => {
  await set('GITHUB', TOKEN)
  await set('OTHER', 'other value')
  app.agent('binding', {}, { secrets: [github, inVariable] })
  const other = {
    secret: 'OTHER',
    hosts: ['api.example.com:8443'],
    as: { query: 'key' },
    methods: ['GET'],
    paths: ['/a/**'],
  }
  const narrower = { ...github, hosts: ['api.github.com'] }
  const { id, sandboxId } = (await create([narrower, other], { agent: 'binding' })).body
  expect((await app.ask('GET', `/v1/sandboxes/${id}`)).body.secrets).toEqual([inVariable, narrower, other])
  expect(boundIn(sandboxId).map(({ name, hosts }) => [name, hosts])).toEqual([
    ['GITHUB', ['github.com']],
    ['GITHUB', ['api.github.com']],
    ['OTHER', ['api.example.com:8443']],
  ])
  app.agent('binding', {}, { secrets: [] })
  expect(boundIn(sandboxId)).toHaveLength(3)
  const { secrets } = (await app.ask('GET', '/v1/secrets')).body
  expect(secrets.find(({ name }: { name: string }) => name === 'OTHER')).toMatchObject({ agents: [], sandboxes: 1 })
})

test('a create is refused by the name of a secret that its agent binds and that is not there', async () => {
  app.agent('lacking', {}, { secrets: [{ ...github, secret: 'LACKING' }] })
  const { status, body } = await create(undefined, { agent: 'lacking' })
  expect([status, body.message]).toEqual([409, expect.stringContaining('LACKING')])
})

test('a changed or removed secret is so at its next use in a running sandbox', async () => {
  await set('CHANGING', 'first value')
  const { sandboxId } = (await create([{ ...github, secret: 'CHANGING' }])).body
  const [bound] = boundIn(sandboxId)
  expect(bound?.value()).toBe('first value')
  await set('CHANGING', 'second value')
  expect(bound?.value()).toBe('second value')
  await set('CHANGING', 'third\nvalue')
  expect(() => bound?.value()).toThrow('CHANGING does not fit')
  await app.ask('DELETE', '/v1/secrets/CHANGING')
  expect(() => bound?.value()).toThrow('CHANGING was removed')
})

test('programs find a placeholder in the variable, of the value’s shape, and another one in each sandbox', async () => {
  await set('GITHUB', TOKEN)
  const found = await Promise.all(
    [0, 1].map(async () => {
      const { id, sandboxId } = (await create([inVariable], { setup: ['printf %s "$GITHUB_TOKEN" > /tmp/seen'] })).body
      const placeholder = await app.shell(id, 'printf %s "$GITHUB_TOKEN"')
      expect(await app.shell(id, 'cat /tmp/seen')).toBe(placeholder)
      expect(boundIn(sandboxId)[0]?.placeholder).toBe(placeholder)
      return placeholder
    }),
  )
  for (const placeholder of found) {
    expect(placeholder).toMatch(/^ghp_[A-Za-z0-9]{36}$/)
    expect(placeholder).not.toBe(TOKEN)
  }
  expect(found[0]).not.toBe(found[1])
})

test('a variable of the request comes before a binding of the agent, and after one of the request', async () => {
  await set('GITHUB', TOKEN)
  app.agent('variable', { envs: { GITHUB_TOKEN: 'of the agent' } }, { secrets: [inVariable] })
  const seen = async (fields: object) =>
    app.shell((await create(undefined, { agent: 'variable', ...fields })).body.id, 'printf %s "$GITHUB_TOKEN"')
  expect(await seen({})).toStartWith('ghp_')
  expect(await seen({ envs: { GITHUB_TOKEN: 'mine' } })).toBe('mine')
  expect(await seen({ envs: { GITHUB_TOKEN: 'mine' }, secrets: [inVariable] })).toStartWith('ghp_')
})

test('a team that is closed has no secret from then on', async () => {
  const { key } = app.beside(db => createKey(db, { team: 'closing', name: 'a' }))
  await set('A', 'value-of-a', key)
  app.beside(db => closeTeam(db, ensureTeam(db, 'closing').id))
  expect(app.runtime.db.query("select * from secrets where name = 'A'").all()).toEqual([])
})

test('each change is in the audit log by name', async () => {
  await set('AUDITED', 'audited value')
  await app.ask('DELETE', '/v1/secrets/AUDITED')
  const { rows } = (await app.ask('GET', '/v1/audit?action=secret')).body
  expect(rows.slice(0, 2)).toEqual([
    expect.objectContaining({ action: 'secret.removed', target: { name: 'AUDITED' } }),
    expect.objectContaining({ action: 'secret.set', target: { name: 'AUDITED' } }),
  ])
})

test('no value is in the data directory, in the log or in an answer: regression', async () => {
  const marked = `sk-${'marked0123456789'.repeat(3)}`
  await set('MARKED', marked)
  app.agent('marked', {}, { secrets: [{ ...inVariable, secret: 'MARKED' }] })
  const { id } = (await create([{ ...github, secret: 'MARKED' }], { agent: 'marked' })).body
  const paths = ['/v1/secrets', `/v1/sandboxes/${id}`, '/v1/agents/marked/definition', '/v1/audit']
  for (const path of paths) expect(JSON.stringify((await app.ask('GET', path)).body)).not.toContain(marked)
  expect(
    await app.shell(id, 'env; cat /proc/*/environ; grep -rsl marked0123456789 /home /tmp /etc || true'),
  ).not.toContain(marked)
  expect(app.log.join('\n')).not.toContain(marked)
  app.runtime.db.run('pragma wal_checkpoint(truncate)')
  const files = readdirSync(app.directory).filter(name => name.startsWith('threadbox.'))
  expect(files).toContain('threadbox.db')
  for (const name of files) expect(readFileSync(join(app.directory, name)).includes('marked0123456789')).toBe(false)
})

test('the audit log says which secrets a new sandbox may use', async () => {
  await set('GITHUB', TOKEN)
  const { id } = (await create([github, inVariable])).body
  const created = async () =>
    (await app.ask('GET', '/v1/audit?action=sandbox.created')).body.rows.find(
      ({ target }: { target: { sandboxId: string } }) => target.sandboxId === id,
    )
  await until(async () => (await created()) !== undefined)
  expect((await created()).detail.secrets).toEqual(['GITHUB'])
})

test('a use is in the audit log by name, once in a minute however often it happens', async () => {
  const { id, sandboxId } = (await create([])).body
  const use = { type: 'secret.used', environmentId: sandboxId, name: 'USED', host: 'a.test', port: 443 } as const
  for (const path of ['/a', '/b', '/a', '/a']) app.runtime.observers.observe({ ...use, method: 'GET', path })
  const usesOf = async () => (await app.ask('GET', '/v1/audit?action=secret.used')).body.rows
  await until(async () => (await usesOf()).length > 0)
  const rows = await usesOf()
  expect(rows).toHaveLength(2)
  expect(rows[1]).toMatchObject({
    target: { sandboxId: id },
    outcome: 'used',
    detail: { name: 'USED', host: 'a.test', port: 443, method: 'GET', path: '/a' },
  })
})

test('a sandbox of a snapshot has its bindings, with placeholders of its own, and those of its create in their place', async () => {
  await set('GITHUB', TOKEN)
  await set('OTHER', 'other value')
  const { id } = (await create([github, inVariable])).body
  const placeholder = await app.shell(id, 'printf %s "$GITHUB_TOKEN"')
  const snapshot = (await app.ask('POST', `/v1/sandboxes/${id}/snapshots`, {})).body.id
  const copyOf = async (fields: object) => (await app.ask('POST', '/v1/sandboxes', { snapshot, ...fields })).body
  const same = await copyOf({})
  const renewed = await app.shell(same.id, 'printf %s "$GITHUB_TOKEN"')
  expect([renewed, renewed === placeholder]).toEqual([expect.stringMatching(/^ghp_[A-Za-z0-9]{36}$/), false])
  expect(boundIn(same.sandboxId).map(bound => [bound.name, bound.placeholder, bound.value()])).toEqual([
    ['GITHUB', undefined, TOKEN],
    ['GITHUB', renewed, TOKEN],
  ])
  const other = await copyOf({ secrets: [{ ...inVariable, secret: 'OTHER' }] })
  expect(await app.shell(other.id, 'printf %s "$GITHUB_TOKEN"')).not.toBe(placeholder)
  expect(boundIn(other.sandboxId).map(({ name }) => name)).toEqual(['GITHUB', 'OTHER'])
  await app.ask('DELETE', '/v1/secrets/GITHUB')
  expect((await copyOf({})).status).toBe('active')
})
