import { beforeAll, describe, expect, test } from 'bun:test'
import { findLastStart } from '../../src/core/sandboxes/spares/last-start.ts'
import { ApiError } from '../../src/errors.ts'
import type { Check, EnvironmentSpec, Isolation } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { bundleOf, deployEvents, deployForm } from '../support/bundle.ts'
import { classedBackend } from '../support/classed-backend.ts'
import { codeOf } from '../support/client.ts'
import { until } from '../support/until.ts'

describe('a server with several backends', () => {
  const app = useApp(['--backends', 'nsjail,box,shield'], {}, () => [
    classedBackend('box', 'container'),
    classedBackend('shield', 'gvisor'),
  ])
  const detail = async (id: string) => (await app.ask('GET', `/v1/sandboxes/${id}`)).body
  const classOf = async (id: string) => {
    const { provider, isolation } = await detail(id)
    return [provider, isolation.kind]
  }

  test('makes a sandbox on the first one that is as strong as the request asks, and works there', async () => {
    const ids = await Promise.all(
      [{}, { isolation: 'namespaces' }, { isolation: 'container' }, { isolation: 'gvisor' }].map(each =>
        app.sandbox(each),
      ),
    )
    expect(await Promise.all(ids.map(classOf))).toEqual([
      ['nsjail', 'namespaces'],
      ['nsjail', 'namespaces'],
      ['box', 'container'],
      ['shield', 'gvisor'],
    ])
    expect(await app.shell(ids[2]!, 'echo works')).toBe('works\n')
    const all = (await app.ask('GET', '/v1/sandboxes')).body.sandboxes
    const listed = ids.map(id => all.find((each: { id: string }) => each.id === id))
    expect(listed.map(({ provider, isolation }) => [provider, isolation.kind])).toEqual(
      await Promise.all(ids.map(classOf)),
    )
    const figures = await (await app.request('GET', '/metrics')).text()
    expect(figures).toContain('threadbox_sandboxes{state="running",backend="shield",isolation="gvisor"} 1')
    for (const id of ids) expect((await app.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
    expect(await app.runtime.backends.get('box')!.list()).toEqual([])
  })

  test("the stronger of an agent's and a request's isolation holds", async () => {
    app.agent('careful', { isolation: 'container' })
    const make = async (fields: object) => (await classOf(await app.sandbox({ agent: 'careful', ...fields })))[1]
    expect(await make({})).toBe('container')
    expect(await make({ isolation: 'namespaces' })).toBe('container')
    expect(await make({ isolation: 'gvisor' })).toBe('gvisor')
  })

  test('one that is too weak for what is asked says what it has, and makes nothing', async () => {
    const before = app.environmentIds.length
    app.agent('strict', { isolation: 'microvm' })
    for (const fields of [
      { isolation: 'microvm' },
      { agent: 'strict' },
      { agent: 'strict', isolation: 'namespaces' },
    ]) {
      const answer = await app.ask('POST', '/v1/sandboxes', { agent: 'echo', ...fields })
      expect(codeOf(answer)).toBe('409 conflict')
      expect(answer.body.error.message).toContain(
        'microvm or stronger is asked for; this server has namespaces (nsjail), container (box), gvisor (shield)',
      )
    }
    expect(app.environmentIds.length).toBe(before)
    expect(codeOf(await app.ask('POST', '/v1/sandboxes', { agent: 'echo', isolation: 'vault' }))).toBe(
      '400 invalid_request',
    )
  })

  test('a copy of a sandbox is on its backend, or is refused where that is too weak', async () => {
    app.agent('copied', { isolation: 'container' })
    const id = await app.sandbox({ agent: 'copied' })
    const { forks } = (await app.ask('POST', `/v1/sandboxes/${id}/fork`, {})).body
    expect(await classOf(forks[0].sandbox.id)).toEqual(['box', 'container'])
    const snapshot = (await app.ask('POST', `/v1/sandboxes/${id}/snapshots`, {})).body.id
    expect(await classOf((await app.ask('POST', '/v1/sandboxes', { snapshot })).body.id)).toEqual(['box', 'container'])
    const refused = await app.ask('POST', '/v1/sandboxes', { snapshot, isolation: 'gvisor' })
    expect(codeOf(refused)).toBe('409 conflict')
    expect(refused.body.error.message).toContain('gvisor or stronger is asked for; box has container')
    app.agent('copied', { isolation: 'gvisor' })
    expect(codeOf(await app.ask('POST', `/v1/sandboxes/${id}/fork`, {}))).toBe('409 conflict')
  })

  test('the operator sees which backends take new sandboxes', async () => {
    const { backends } = (await app.ask('GET', '/v1/server')).body
    expect(backends).toContainEqual({
      name: 'shield',
      isolation: 'gvisor',
      isolations: ['gvisor'],
      isDefault: false,
      takesNew: true,
    })
    const { checks } = (await app.ask('GET', '/v1/server/checks')).body
    expect(checks.some(({ name }: Check) => name.startsWith('box: '))).toBe(true)
  })
})

describe('a backend whose sandboxes are of two classes', () => {
  /** The weaker is what a sandbox has that asks for nothing; a runtime of the agent's decides by itself. */
  const classIn = ({ runtime, isolation }: Pick<EnvironmentSpec, 'runtime' | 'isolation'>): Isolation => {
    if (runtime !== undefined && runtime !== 'plain' && runtime !== 'kernel')
      throw new ApiError('invalid_request', `The runtime ${runtime} is not one of this server's.`)
    if (runtime !== undefined) return runtime === 'kernel' ? 'gvisor' : 'container'
    return isolation === 'gvisor' || isolation === 'microvm' ? 'gvisor' : 'container'
  }
  const made = new Map<string, Isolation>()
  const app = useApp(['--backends', 'nsjail,engine'], {}, () => [
    classedBackend('engine', 'container', jails => ({
      isolationOf: classIn,
      async create(spec) {
        const ofSnapshot = spec.snapshot === undefined ? undefined : made.get(spec.snapshot)
        made.set(spec.id, ofSnapshot ?? classIn(spec))
        const environment = await jails.create(spec)
        Object.defineProperty(environment, 'isolation', { value: made.get(spec.id) })
        return environment
      },
      ...(jails.snapshots && {
        snapshots: {
          take(environmentId, snapshotId, signal) {
            made.set(snapshotId, made.get(environmentId)!)
            return jails.snapshots!.take(environmentId, snapshotId, signal)
          },
          isolationOf: async snapshotId => made.get(snapshotId)!,
          remove: snapshotId => jails.snapshots!.remove(snapshotId),
        },
      }),
    })),
  ])
  const classOf = async (id: string) => {
    const { provider, isolation } = (await app.ask('GET', `/v1/sandboxes/${id}`)).body
    return `${provider}: ${isolation.kind}`
  }
  const refused = async (fields: object, path = '/v1/sandboxes') => {
    const before = app.environmentIds.length
    const answer = await app.ask('POST', path, fields)
    expect(app.environmentIds.length).toBe(before)
    return `${codeOf(answer)}: ${answer.body.error?.message}`
  }

  test('makes the one that is asked for, whoever asks, and names both', async () => {
    app.agent('walled', { isolation: 'gvisor' })
    app.agent('named', { runtime: 'kernel', isolation: 'container' })
    const ids = await Promise.all(
      [{}, { isolation: 'container' }, { isolation: 'gvisor' }, { agent: 'walled' }, { agent: 'named' }].map(each =>
        app.sandbox(each),
      ),
    )
    expect(await Promise.all(ids.map(classOf))).toEqual([
      'nsjail: namespaces',
      'engine: container',
      'engine: gvisor',
      'engine: gvisor',
      'engine: gvisor',
    ])
    const { backends } = (await app.ask('GET', '/v1/server')).body
    expect(backends).toContainEqual({
      ...{ name: 'engine', isolation: 'container', isolations: ['container', 'gvisor'] },
      ...{ isDefault: false, takesNew: true },
    })
    const figures = await (await app.request('GET', '/metrics')).text()
    expect(figures).toContain('threadbox_sandboxes{state="running",backend="engine",isolation="gvisor"} 3')
  })

  test('refuses what an agent’s runtime is too weak for, or does not have, before anything is made', async () => {
    app.agent('plain', { runtime: 'plain' })
    app.agent('other', { runtime: 'other', isolation: 'container' })
    expect(await refused({ agent: 'plain', isolation: 'gvisor' })).toBe(
      "409 conflict: isolation: gvisor or stronger is asked for; the agent's runtime is plain, and this server has namespaces (nsjail), container or gvisor (engine)",
    )
    expect(await refused({ agent: 'echo', isolation: 'microvm' })).toContain('container or gvisor (engine)')
    expect(await refused({ agent: 'other' })).toBe(
      "400 invalid_request: The runtime other is not one of this server's.",
    )
  })

  test('copies have the class of what they are made of', async () => {
    const strong = await app.sandbox({ isolation: 'gvisor' })
    const weak = await app.sandbox({ isolation: 'container' })
    const snapshotOf = async (id: string) => (await app.ask('POST', `/v1/sandboxes/${id}/snapshots`, {})).body.id
    const copy = await app.sandbox({ agent: undefined, snapshot: await snapshotOf(strong), isolation: 'gvisor' })
    expect(await classOf(copy)).toBe('engine: gvisor')
    const { forks } = (await app.ask('POST', `/v1/sandboxes/${strong}/fork`, {})).body
    expect(await classOf(forks[0].sandbox.id)).toBe('engine: gvisor')
    expect(await refused({ snapshot: await snapshotOf(weak), isolation: 'gvisor' })).toContain(
      '409 conflict: isolation: gvisor or stronger is asked for; engine has container for it',
    )
  })

  test('a deploy loads its bundle in a sandbox of the class, or is refused in the same words', async () => {
    const fields = (slug: string) => ({ slug, bundle: bundleOf('export default {tools:{}}') })
    const deploy = async (form: object, slug: string) => {
      const body = deployForm({ ...fields(slug), ...form })
      return (await deployEvents(await app.request('POST', '/v1/agents/deploy', { body }))).at(-1)
    }
    const before = new Set(made.keys())
    expect(await deploy({ sandboxConfig: { isolation: 'gvisor' } }, 'deep')).toMatchObject({ type: 'result' })
    expect([...made].filter(([id]) => !before.has(id)).map(([, isolation]) => isolation)).toEqual(['gvisor'])
    app.agent('theirs', { runtime: 'other', isolation: 'container' })
    expect(JSON.stringify(await deploy({}, 'theirs'))).toContain("The runtime other is not one of this server's.")
    app.agent('flat', { runtime: 'plain' })
    expect(JSON.stringify(await deploy({ sandboxConfig: { isolation: 'gvisor' } }, 'flat'))).toContain(
      "gvisor or stronger is asked for; the agent's runtime is plain",
    )
  })
})

describe('a server with a backend that is not ready', () => {
  const missing: Check[] = [{ name: 'engine', ok: false, required: true, detail: 'secret detail' }]
  const state = { checks: missing }
  const app = useApp(['--backends', 'nsjail,away'], {}, () => [
    classedBackend('away', 'container', () => ({ check: async () => state.checks })),
  ])

  test('makes sandboxes on the others, and says that this one is not ready', async () => {
    expect(await app.shell(await app.sandbox(), 'echo works')).toBe('works\n')
    const before = app.environmentIds.length
    const answer = await app.ask('POST', '/v1/sandboxes', { agent: 'echo', isolation: 'container' })
    expect(codeOf(answer)).toBe('503 sandbox_unavailable')
    expect(answer.body.error.message).toBe('The backend away (container) is not ready: engine.')
    expect(app.environmentIds.length).toBe(before)
    expect(app.log.join('\n')).toContain('the backend away is not ready')
    const ready = await app.ask('GET', '/health/ready', undefined, { key: null })
    expect([ready.status, ready.body]).toEqual([200, { status: 'ready', unavailable: ['away: engine'] }])
    const { checks } = (await app.ask('GET', '/v1/server/checks')).body
    expect(checks.find(({ name }: Check) => name === 'away: engine')).toMatchObject({ ok: false, required: false })
  })
})

describe('a server that keeps spares', () => {
  const app = useApp(['--backends', 'nsjail,box,full', '--spares', '1'], {}, () => [
    classedBackend('box', 'container'),
    classedBackend('full', 'gvisor', jails => ({
      create: async spec => (spec.isSpare ? Promise.reject(new Error('no room')) : await jails.create(spec)),
    })),
  ])
  beforeAll(() => app.runtime.spares.start(findLastStart(app.runtime)))
  const listed = (backend: string) => app.runtime.backends.get(backend)!.list()

  test('keeps them on each backend that is asked for, and one that fails keeps no other from it', async () => {
    await app.sandbox({ isolation: 'gvisor' })
    await until(() => app.log.some(line => line.startsWith('no spare sandbox could be made on full: no room')))
    await app.sandbox({ isolation: 'container' })
    await until(async () => (await listed('box')).length === 2 && (await listed('nsjail')).length === 1)
    await until(() => app.runtime.spares.count() === 2)
    const before = await listed('box')
    const id = await app.sandbox({ isolation: 'container' })
    expect(before).toContain((await app.ask('GET', `/v1/sandboxes/${id}`)).body.sandboxId)
    await until(async () => app.runtime.spares.count() === 2 && (await listed('nsjail')).length === 1)
  })
})
