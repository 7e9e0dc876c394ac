import { beforeAll, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import type { Scope } from '../../src/model/scope.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { createSecretHost } from '../support/secret-host.ts'
import { until } from '../support/until.ts'

const TOKEN = `ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)}`
const host = createSecretHost(({ authorization, 'x-token': token }) =>
  authorization === `Bearer ${TOKEN}` || token === TOKEN ? 'known' : 'unknown',
)
const app = useApp(['--network-private', '127.0.0.0/8'], {}, () => [], host.reach)
beforeAll(() => app.ask('PUT', '/v1/secrets/API', { value: TOKEN }))
const { hosts, origin, networkAllowOut } = host

const inHeader = () => ({ secret: 'API', hosts, as: { header: 'authorization', format: 'Bearer {}' } })
const inVariable = () => ({ secret: 'API', hosts, as: { env: 'API_TOKEN' } })
const change = (id: string, secrets: unknown, fields: object = {}, key = app.key) =>
  app.ask('PATCH', `/v1/sandboxes/${id}`, { secrets, ...fields }, { key })
const keyFor = (...scopes: Scope[]) => createKey(app.runtime.db, { team: 'default', name: 'scoped', scopes }).key
const boundOf = async (id: string) => (await app.ask('GET', `/v1/sandboxes/${id}`)).body.secrets
const fetched = (id: string, options = '') => app.shell(id, `curl -sS ${options} ${origin} 2>&1 || true`)

test('a secret that is bound to a living sandbox is used at once, by programs that trust its host, until it is not bound any more', async () => {
  const id = await app.sandbox({ networkAllowOut })
  expect(await app.shell(id, 'ls -d /etc/threadbox 2>&1 || true')).toContain('No such file')
  expect(await fetched(id, '-k')).toBe('unknown')
  // A program that is there already, and a connection that is open already.
  const watch = `import socket, ssl
s = ssl._create_unverified_context().wrap_socket(socket.create_connection(("api.test", ${new URL(origin).port})), server_hostname="api.test")
open("/tmp/open", "w").close()
s.read()
open("/tmp/cut", "w").close()`
  await app.shell(id, `cat > /tmp/watch.py <<'END'\n${watch}\nEND`)
  await app.ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'python3 /tmp/watch.py' })
  const later = `until [ -e /tmp/go ]; do sleep 0.1; done; curl -sS --cacert /etc/threadbox/ca-bundle.crt ${origin} > /tmp/later.new 2>&1; mv /tmp/later.new /tmp/later`
  await app.ask('POST', `/v1/sandboxes/${id}/processes`, { command: later })
  await until(async () => (await app.exec(id, 'test -e /tmp/open')).exitCode === 0)

  const changed = await change(id, [inHeader(), inVariable()])
  expect([changed.status, changed.body.secrets]).toEqual([200, [inHeader(), inVariable()]])
  await until(async () => (await app.exec(id, 'test -e /tmp/cut')).exitCode === 0)
  await app.shell(id, 'touch /tmp/go')
  await until(async () => (await app.exec(id, 'test -e /tmp/later')).exitCode === 0)
  expect(await app.shell(id, 'cat /tmp/later')).toBe('known')
  expect(await fetched(id)).toBe('known')

  expect((await change(id, [inVariable()])).body.secrets).toEqual([inVariable()])
  expect(await fetched(id)).toBe('unknown')
  expect(await fetched(id, '-H "x-token: $API_TOKEN"')).toBe('known')
  await change(id, [])
  expect(await fetched(id, '-k')).toBe('unknown')
  expect(await app.shell(id, 'env | grep -c API_TOKEN; true')).toBe('0\n')
})

test('a placeholder stays as it is while its secret and variable are bound', async () => {
  const id = await app.sandbox({ secrets: [inVariable()], envs: { OTHER: 'mine' } })
  const placeholder = () => app.shell(id, 'printf %s "$API_TOKEN"')
  const first = await placeholder()
  await change(id, [inHeader(), { ...inVariable(), hosts: ['other.test'] }])
  expect([await placeholder(), await app.shell(id, 'printf %s "$OTHER"')]).toEqual([first, 'mine'])
  await change(id, [inHeader()])
  await change(id, [inVariable()])
  expect(await placeholder()).not.toBe(first)
})

test('a variable that the create has set over one of the agent stays, and a secret that is gone can stay bound', async () => {
  await app.ask('PUT', '/v1/secrets/GONE', { value: 'value-of-gone' })
  const gone = { ...inHeader(), secret: 'GONE', hosts: ['gone.test'] }
  app.agent('binding', {}, { secrets: [inVariable(), gone] })
  const id = await app.sandbox({ agent: 'binding', envs: { API_TOKEN: 'mine' } })
  await app.ask('DELETE', '/v1/secrets/GONE')
  const { status } = await change(id, [inVariable(), gone, inHeader()])
  expect([status, await app.shell(id, 'printf %s "$API_TOKEN"')]).toEqual([200, 'mine'])
  const again = await change(id, [{ ...gone, hosts: ['new.test'] }])
  expect([codeOf(again), again.body.message]).toEqual([
    '400 invalid_request',
    expect.stringContaining('there is no secret GONE'),
  ])
  expect(await boundOf(id)).toHaveLength(3)
})

test('a sandbox that has stopped is not started, and has what its secrets need when it is', async () => {
  const id = await app.sandbox({ networkAllowOut })
  await app.ask('POST', `/v1/sandboxes/${id}/stop`)
  expect((await change(id, [inHeader()])).body.isRunning).toBe(false)
  expect(await fetched(id)).toBe('known')
})

test('a secret goes with requests that have what the binding looks for, and with no others', async () => {
  const when = {
    headers: [{ name: { exact: 'X-Kind' }, value: { startsWith: 'mod' } }],
    query: [{ name: { exact: 'v' }, value: { exact: '1 2' } }],
  }
  const id = await app.sandbox({ networkAllowOut, secrets: [{ ...inHeader(), when }] })
  expect(await boundOf(id)).toEqual([{ ...inHeader(), when }])
  const asked = (options: string) => app.shell(id, `curl -sS ${options}`)
  expect(await asked(`-H 'x-kind: model' '${origin}/?v=1%202'`)).toBe('known')
  expect(await asked(`-H 'x-kind: model' '${origin}/?v=12'`)).toBe('unknown')
  expect(await asked(`-H 'x-kind: mo' '${origin}/?v=1%202'`)).toBe('unknown')
  expect(await asked(`'${origin}/?v=1%202'`)).toBe('unknown')
  const wrong = { ...inHeader(), when: { headers: [{ name: { exact: 'a', startsWith: 'a' } }] } }
  expect(codeOf(await change(id, [wrong]))).toBe('400 invalid_request')
  expect(codeOf(await change(id, [{ secret: 'API', hosts, as: { ssh: { user: 'git' } }, when }]))).toBe(
    '400 invalid_request',
  )
})

test('rules and secrets are changed together, or not at all', async () => {
  const id = await app.sandbox({ networkAllowOut })
  const wrong = await change(id, [inHeader()], { networkDenyOut: ['not a host'] })
  expect([codeOf(wrong), await boundOf(id)]).toEqual(['400 invalid_request', []])
  const { body } = await change(id, [inHeader()], { networkDenyOut: ['api.test'] })
  expect([body.network.denyOut, body.secrets]).toEqual([['api.test'], [inHeader()]])
  const neither = await change(id, [{ ...inHeader(), secret: 'NONE' }], { networkDenyOut: null })
  expect(codeOf(neither)).toBe('400 invalid_request')
  expect((await app.ask('GET', `/v1/sandboxes/${id}`)).body.network.denyOut).toEqual(['api.test'])
})

test('neither a token, nor a key without the scope, nor another team changes what is bound: regression', async () => {
  const { token } = (await app.ask('POST', '/v1/tokens', { userId: 'ann' })).body
  const { id } = (await app.ask('POST', '/v1/sandboxes', { agent: 'echo' }, { key: token })).body
  expect(codeOf(await change(id, [inHeader()], {}, token))).toBe('403 forbidden')
  expect(codeOf(await change(id, [], {}, token))).toBe('403 forbidden')
  expect(codeOf(await change(id, [inHeader()], {}, keyFor('sandboxes')))).toBe('403 forbidden')
  expect(codeOf(await change(id, [inHeader()], {}, keyFor('secrets')))).toBe('403 forbidden')
  expect(codeOf(await change(id, [inHeader()], {}, app.foreignKey))).toBe('404 sandbox_not_found')
  expect(await boundOf(id)).toEqual([])
  expect((await change(id, [inHeader()], {}, keyFor('sandboxes', 'secrets'))).status).toBe(200)
})

test('each change is in the audit log, by the names of the secrets', async () => {
  const id = await app.sandbox()
  await change(id, [inHeader(), inVariable()])
  const { rows } = (await app.ask('GET', '/v1/audit?action=sandbox.bound')).body
  expect(rows[0]).toMatchObject({ target: { sandboxId: id }, detail: { secrets: ['API'] }, outcome: 'done' })
  expect(JSON.stringify(rows)).not.toContain(TOKEN)
})
