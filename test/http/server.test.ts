import { expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'

const app = useApp(['--api-key', 'tbx_configured_0123456789', '--model-key', 'sk-swordfish', '--memory-mb', '512'])

test('the operator sees the server, its machine and its settings, without secrets', async () => {
  const { status, body } = await app.ask('GET', '/v1/server')
  expect(status).toBe(200)
  expect(body.machine.memoryBytes).toBeGreaterThan(body.machine.availableMemoryBytes)
  expect(body.backends).toContainEqual({
    name: 'nsjail',
    isolation: 'namespaces',
    isolations: ['namespaces'],
    isDefault: true,
    takesNew: true,
  })
  const setting = (name: string) => body.settings.find((each: { name: string }) => each.name === name)
  expect(setting('memory-mb')).toMatchObject({ value: '512', source: 'flag' })
  expect(setting('processes')).toMatchObject({ value: '512', source: 'default' })
  expect(setting('model-key')).toMatchObject({ value: '••••', source: 'flag' })
  expect(setting('public-url').value).toBeUndefined()
  expect(JSON.stringify(body)).not.toMatch(/swordfish|tbx_configured/)
})

test('and what its backend needs', async () => {
  const answers = await Promise.all([1, 2].map(() => app.ask('GET', '/v1/server/checks')))
  for (const { status, body } of answers) {
    expect(status).toBe(200)
    expect(body.checks.length).toBeGreaterThan(0)
    expect(body.checks.every((each: { name: string; ok: boolean }) => each.name && typeof each.ok === 'boolean')).toBe(
      true,
    )
  }
})

test('another team and a token see neither', async () => {
  const { token } = (await app.ask('POST', '/v1/tokens', {})).body
  for (const key of [token, app.foreignKey]) {
    for (const path of ['/v1/server', '/v1/server/checks'])
      expect(codeOf(await app.ask('GET', path, undefined, { key }))).toBe('403 forbidden')
  }
})
