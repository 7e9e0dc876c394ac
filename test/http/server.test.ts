import { expect, test } from 'bun:test'
import { join } from 'node:path'
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

test('another team and a token see none of it', async () => {
  const { token } = (await app.ask('POST', '/v1/tokens', {})).body
  for (const key of [token, app.foreignKey]) {
    for (const path of ['/v1/server', '/v1/server/checks', '/v1/server/selftest'])
      expect(codeOf(await app.ask('GET', path, undefined, { key }))).toBe('403 forbidden')
  }
})

test('the last result of the selftest is shown, and none where the file is not one', async () => {
  const shown = async () => (await app.ask('GET', '/v1/server/selftest')).body.selftest
  expect(await shown()).toBeNull()
  const path = join(app.runtime.config.dataDirectory, 'selftest.json')
  const probe = { id: 'mounts/bind', area: 'mounts', tried: 'a', meaning: 'b', outcome: 'leaked', found: ['c'], ms: 1 }
  const backend = { backend: 'nsjail', isolation: 'namespaces', ms: 2, probes: [probe] }
  const report = { version: '1.0.0', startedAt: '2026-11-23T00:00:00.000Z', ms: 3, isRoot: true, backends: [backend] }
  await Bun.write(path, JSON.stringify(report))
  expect(await shown()).toEqual(report)
  await Bun.write(
    path,
    JSON.stringify({ ...report, backends: [{ ...backend, probes: [{ ...probe, outcome: 'x' }] }, 7] }),
  )
  expect(await shown()).toEqual({ ...report, backends: [{ ...backend, probes: [] }] })
  await Bun.write(
    path,
    JSON.stringify({ ...report, backends: [{ ...backend, probes: [{ ...probe, found: [{ toString: 1 }, 'c'] }] }] }),
  )
  expect(await shown()).toEqual(report)
  for (const text of [
    '',
    '{}',
    '[',
    JSON.stringify({ ...report, ms: '3' }),
    JSON.stringify({ ...report, startedAt: 'x' }),
  ]) {
    await Bun.write(path, text)
    expect(await shown()).toBeNull()
  }
})
