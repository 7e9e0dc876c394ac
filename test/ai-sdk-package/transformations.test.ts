import { beforeAll, expect, test } from 'bun:test'
import { HarnessCapabilityUnsupportedError, type HarnessV1RequestTransformation } from '@ai-sdk/harness'
import { createCredentialRequestTransformation, generateSandboxCredentialPlaceholder } from '@ai-sdk/harness/utils'
import { createThreadboxSandbox } from '../../packages/ai-sdk/src/index.ts'
import { createKey } from '../../src/core/access/keys.ts'
import { useApp } from '../support/app.ts'
import { createSecretHost } from '../support/secret-host.ts'

const KEY = 'sk-ant-0123456789abcdefghijklmnop'
const host = createSecretHost(({ authorization, 'x-api-key': key, 'x-org': org }, url) =>
  JSON.stringify([authorization ?? null, key === KEY, org ?? null, new URL(url).pathname]),
)
const app = useApp(['--network-private', '127.0.0.0/8'], {}, () => [], host.reach)
const { networkAllowOut, origin } = host
const [name = ''] = host.hosts

const open = (apiKey = app.key) => createThreadboxSandbox({ baseUrl: app.url, apiKey, networkAllowOut }).createSession()
type Session = Awaited<ReturnType<typeof open>>
const boundOf = async (id: string) => (await app.ask('GET', `/v1/sandboxes/${id}`)).body.secrets
const secretsOf = async (id: string): Promise<string[]> =>
  (await app.ask('GET', '/v1/secrets')).body.secrets
    .map((each: { name: string }) => each.name)
    .filter((each: string) => each.includes(id))
const asked = async (session: Session, options: string) => {
  const { stdout, stderr } = await session.run({ command: `curl -sS ${options}` })
  return stderr === '' ? JSON.parse(stdout) : stderr
}
const withHeader = (header: string, text: string, match: object = {}): HarnessV1RequestTransformation => ({
  match: { host: name, ...match },
  transform: { headers: { [header]: text } },
})

let session: Session
beforeAll(async () => {
  session = await open()
})

test('a credential of a harness is put into the requests that have its placeholder, and is not in the sandbox', async () => {
  const placeholder = generateSandboxCredentialPlaceholder()
  const made = createCredentialRequestTransformation({
    matchUrl: `${origin}/v1/`,
    matchHeaders: { 'x-api-key': placeholder },
    transformHeaders: { 'x-api-key': KEY },
  })
  // Harnesses speak with the usual port.
  await session.addRequestTransformations?.([{ ...made, match: { ...made.match, host: name } }])
  expect(await asked(session, `-H 'x-api-key: ${placeholder}' ${origin}/v1/messages`)).toEqual([
    null,
    true,
    null,
    '/v1/messages',
  ])
  expect(await asked(session, `-H 'x-api-key: ${placeholder}' ${origin}/other`)).toEqual([null, false, null, '/other'])
  expect(await asked(session, `-H 'x-api-key: another' ${origin}/v1/messages`)).toEqual([
    null,
    false,
    null,
    '/v1/messages',
  ])
  const { stdout } = await session.run({
    command: `env; grep -rlsF ${KEY.slice(0, 12)} /etc/threadbox /tmp /home; true`,
  })
  expect(stdout).not.toContain(KEY)
})

test('transformations are added and replaced, beside the bindings that the sandbox has of others', async () => {
  await app.ask('PUT', '/v1/secrets/ORG', { value: 'acme-inc' })
  const org = { secret: 'ORG', hosts: [name], as: { header: 'x-org' } }
  const { id } = await open()
  await app.ask('PATCH', `/v1/sandboxes/${id}`, { secrets: [org] })
  const wrapped = await createThreadboxSandbox({ baseUrl: app.url, apiKey: app.key, sandbox: id }).createSession()
  await Promise.all([
    wrapped.setRequestTransformations?.([withHeader('Authorization', 'Bearer first-token')]),
    wrapped.addRequestTransformations?.([withHeader('x-api-key', KEY, { method: ['post'] })]),
  ])
  // What the host tells of a secret is masked.
  expect(await asked(wrapped, `-X POST ${origin}/a`)).toEqual(['Bearer ***********', true, '********', '/a'])
  expect(await asked(wrapped, `${origin}/a`)).toEqual(['Bearer ***********', false, '********', '/a'])
  expect(await secretsOf(id)).toHaveLength(2)
  // The same header of the same requests has the newest value alone.
  await wrapped.addRequestTransformations?.([withHeader('authorization', 'Bearer second')])
  expect(await asked(wrapped, `${origin}/a`)).toEqual(['Bearer ******', false, '********', '/a'])
  expect(await secretsOf(id)).toHaveLength(2)
  await wrapped.setRequestTransformations?.([])
  expect([await boundOf(id), await secretsOf(id)]).toEqual([[org], []])
  expect(await asked(wrapped, `${origin}/a`)).toEqual([null, false, '********', '/a'])
})

test('what cannot be matched or sent is refused, and nothing has changed', async () => {
  const fresh = await open()
  for (const wrong of [
    withHeader('x-org', 'acme-inc', { path: { regex: '^/v1' } }),
    withHeader('x-org', 'acme-inc', { path: { exact: '/a*b' } }),
    withHeader('x-org', 'acme-inc', { headers: [{ value: { regex: '.' } }] }),
    withHeader('x-org', 'one'),
  ])
    await expect(async () => await fresh.setRequestTransformations?.([wrong])).toThrow(
      HarnessCapabilityUnsupportedError,
    )
  await expect(async () => await fresh.setRequestTransformations?.([withHeader('content-length', '1234')])).toThrow(
    'cannot carry a secret',
  )
  expect([await boundOf(fresh.id), await secretsOf(fresh.id)]).toEqual([[], []])
})

test('a session that is destroyed leaves no secret', async () => {
  const fresh = await open()
  await fresh.setRequestTransformations?.([withHeader('x-api-key', KEY)])
  expect(await secretsOf(fresh.id)).toHaveLength(1)
  await fresh.destroy()
  expect(await secretsOf(fresh.id)).toEqual([])
})

test('a key that may not bind has a session without them, so that harnesses go another way', async () => {
  const { key } = createKey(app.runtime.db, { team: 'default', name: 'sandboxes', scopes: ['sandboxes'] })
  const without = await open(key)
  expect('setRequestTransformations' in without).toBe(false)
  expect('addRequestTransformations' in without).toBe(false)
  expect('setRequestTransformations' in session.restricted()).toBe(false)
})
