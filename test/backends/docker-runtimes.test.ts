import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf } from '../support/client.ts'
import { importBusybox } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { writeFakeRunsc } from '../support/fake-gvisor.ts'
import { command, patiently, Server } from '../support/server.ts'
import { until } from '../support/until.ts'

/** Runtimes of an engine, and what sandboxes on them are: with runc as what they all run, so that no gVisor is needed. */

patiently()

const directory = mkdtempSync(join(tmpdir(), 'threadbox-runtimes-'))
const fake = (name: string, seccomp: Parameters<typeof writeFakeRunsc>[1]) => {
  mkdirSync(join(directory, name))
  return { path: writeFakeRunsc(join(directory, name), seccomp) }
}

// Before the engine goes.
afterAll(() => server.close())
const dockerd = useDockerd({
  settings: () => ({
    runtimes: {
      plain: { path: 'runc' },
      runsc: fake('kept', 'kept'),
      'runsc-bare': fake('bare', 'dropped'),
      'gvisor-not': { path: 'runc' },
    },
  }),
})
afterAll(() => rmSync(directory, { recursive: true }))
const runtimes = 'plain,runsc,runsc-bare,gvisor-not,runsc-none'
const flags = [
  ...['--backends', 'nsjail,docker', '--docker-image', 'busybox', '--docker-runtime', runtimes],
  ...['--agents', join(directory, 'agents'), '--spares', '0'],
]
const env = { DOCKER_HOST: dockerd.host }
const server = new Server({ flags, env })
const agents = { barred: 'runsc-bare', faked: 'gvisor-not', missing: 'runsc-none', unlisted: 'runc' }

beforeAll(async () => {
  mkdirSync(join(directory, 'agents'))
  for (const [slug, runtime] of Object.entries({ ...agents, plainly: 'plain' }))
    await Bun.write(
      join(directory, 'agents', `${slug}.json`),
      JSON.stringify({ slug, name: slug, engine: 'echo', sandbox: { runtime, isolation: 'container' } }),
    )
  await importBusybox(dockerd.api)
  await server.start()
}, 300_000)

const create = (fields: object) => server.ask('POST', '/v1/sandboxes', { agent: 'echo', ...fields })
const detail = async (id: string) => (await server.ask('GET', `/v1/sandboxes/${id}`)).body
const runtimeOf = async (id: string) => {
  const container = `threadbox-${(await detail(id)).sandboxId}`
  return (await dockerd.api.ask('GET', `/containers/${container}/json`)).HostConfig.Runtime
}
/** Refused, and no container is left. */
const refused = async (fields: object) => {
  const before = (await dockerd.api.containers()).length
  const answer = await create(fields)
  expect((await dockerd.api.containers()).length).toBe(before)
  return `${codeOf(answer)}: ${answer.body.error?.message}`
}

test('the class that is asked for picks the runtime, and copies keep it', async () => {
  const ids: string[] = []
  for (const isolation of ['container', 'gvisor'] as const) {
    const { status, body } = await create({ isolation })
    expect(status).toBe(201)
    ids.push(body.id)
  }
  expect(await Promise.all(ids.map(runtimeOf))).toEqual(['plain', 'runsc'])
  const [weak = '', strong = ''] = ids
  expect((await detail(strong)).isolation).toMatchObject({
    kind: 'gvisor',
    details: expect.arrayContaining([
      expect.stringContaining("on gVisor's kernel (runsc)"),
      expect.stringMatching(/^network: .*TCP leads nowhere else: gVisor /),
    ]),
  })
  const { forks } = (await server.ask('POST', `/v1/sandboxes/${strong}/fork`, {})).body
  const snapshots = await Promise.all(
    ids.map(async id => (await server.ask('POST', `/v1/sandboxes/${id}/snapshots`, {})).body.id),
  )
  const copy = (await server.ask('POST', '/v1/sandboxes', { snapshot: snapshots[1], isolation: 'gvisor' })).body.id
  expect(await Promise.all([forks[0].sandbox.id, copy].map(runtimeOf))).toEqual(['runsc', 'runsc'])
  const answer = await server.ask('POST', '/v1/sandboxes', { snapshot: snapshots[0], isolation: 'gvisor' })
  expect([codeOf(answer), answer.body.error.message]).toEqual([
    '409 conflict',
    expect.stringContaining(
      'docker has container for it, and this server has namespaces (nsjail), container or gvisor',
    ),
  ])
  const metrics = await (await server.request('GET', '/metrics')).text()
  expect(metrics).toContain('threadbox_sandboxes{state="running",backend="docker",isolation="gvisor"} 3')
  expect(metrics).toContain('threadbox_sandboxes{state="running",backend="docker",isolation="container"} 1')
  const all = [weak, strong, forks[0].sandbox.id, copy]
  for (const id of all) expect((await server.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
})

test('where the kernel keeps file locks, the resident set is the mark, and a kill finds all by it: regression', async () => {
  const { id } = (await create({ isolation: 'gvisor' })).body
  const mark = "grep -E 'Max (file locks|resident set)' /proc/self/limits | tr -s ' ' | cut -d' ' -f4"
  const [resident, fileLocks] = (await server.exec(id, mark)).stdout.trim().split('\n')
  expect([fileLocks, Number(resident) > 0]).toEqual(['unlimited', true])
  // Another command has another mark, and root inside changes none.
  expect((await server.exec(id, mark)).stdout.split('\n')[0]).not.toBe(resident)
  expect((await server.exec(id, 'ulimit -Sm 5; ulimit -Hm 5; ulimit -m')).stdout.trim()).not.toBe('5')
  const command = "(setsid sh -c 'sleep 47474 & sleep 47474' &) ; sleep 47474"
  const timedOut = await server.ask('POST', `/v1/sandboxes/${id}/exec`, { command, timeoutMs: 1500 })
  expect(codeOf(timedOut)).toContain('command_timeout')
  expect((await server.exec(id, "ps | grep -c '[s]leep 47474'")).stdout.trim()).toBe('0')
  expect((await server.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
})

test.each([
  ['plainly', /^409 conflict: isolation: gvisor or stronger is asked for; the agent's runtime is plain/],
  ['barred', /^503 sandbox_unavailable: .*--oci-seccomp/],
  ['faked', /^503 sandbox_unavailable: .*runtime gvisor-not is runc, which is not gVisor/],
  ['missing', /^503 sandbox_unavailable: .*no runtime runsc-none; it has /],
  ['unlisted', /^400 invalid_request: The runtime runc is not one of this server's: it offers plain, runsc, /],
])('an agent %s is refused in words that say why, and no container is left', async (agent, words) => {
  expect(await refused({ agent, isolation: 'gvisor' })).toMatch(words)
})

test('doctor and readiness tell of each runtime that is listed, and the server makes what it can', async () => {
  const { code, stdout } = await command(['doctor', '--data-dir', join(directory, 'data'), ...flags.slice(0, 6)], {
    env,
  })
  expect(code).toBe(0)
  for (const line of [
    /^ok +docker: runtime: plain \(container\)$/m,
    /^ok +docker: runtime runsc: runsc \(gvisor\)$/m,
    /^missing +docker: runtime runsc-bare: .*--oci-seccomp/m,
    /^missing +docker: runtime gvisor-not: .*not gVisor/m,
    /^missing +docker: runtime runsc-none: .*has no runtime/m,
  ])
    expect(stdout).toMatch(line)
  // A machine that is busy may take longer for it than a connection lasts that is silent; the answer is kept.
  let ready: unknown
  await until(async () => {
    ready = await fetch(`${server.url}/health/ready`).then(
      answer => answer.json(),
      () => undefined,
    )
    return ready !== undefined
  })
  expect(ready).toEqual({
    status: 'ready',
    unavailable: ['runsc-bare', 'gvisor-not', 'runsc-none'].map(each => `docker: runtime ${each}`),
  })
  const { backends } = (await server.ask('GET', '/v1/server')).body
  expect(backends).toContainEqual({
    ...{ name: 'docker', isolation: 'container', isolations: ['container', 'gvisor'] },
    ...{ isDefault: false, takesNew: true },
  })
  expect(await dockerd.api.containers()).toEqual([])
})
