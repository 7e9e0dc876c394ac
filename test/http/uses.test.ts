import { expect, test } from 'bun:test'
import { createUses } from '../../src/core/sandboxes/uses.ts'
import type { Backend, EnvironmentUsage } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { until } from '../support/until.ts'

const app = useApp()
const detail = async (id: string) => (await app.ask('GET', `/v1/sandboxes/${id}`)).body
const listed = async (id: string) => (await app.ask('GET', `/v1/sandboxes?q=${id}`)).body.sandboxes[0]

test('a sandbox that runs tells what it uses, in the list too, and its limits', async () => {
  const id = await app.sandbox()
  const before = await listed(id)
  expect(before.use.processes).toBeLessThan(20)
  const command = `python3 -c "import time; x = b'x' * 100_000_000; time.sleep(1000)"`
  await app.exec(id, `head -c 50000000 /dev/urandom > big; sync; (${command}) >/dev/null 2>&1 &`)
  await until(async () => (await detail(id)).use.memoryBytes > before.use.memoryBytes + 90_000_000)
  const { use, limits, isRunning } = await detail(id)
  expect(isRunning).toBe(true)
  expect(use.diskBytes - before.use.diskBytes).toBeGreaterThan(45_000_000)
  expect(use.diskBytes).toBeLessThan(limits.diskMb * 1024 * 1024)
  expect(limits).toEqual({ memoryMb: 2048, processes: 512, cpus: 2, diskMb: 10_240 })
  await app.exec(id, 'rm big; sync; (while :; do :; done) >/dev/null 2>&1 &')
  await until(async () => ((await detail(id)).use.cpus ?? 0) > 0.05)
})

test('a stopped sandbox tells nothing, and is not started by the question', async () => {
  const id = await app.sandbox()
  await app.ask('POST', `/v1/sandboxes/${id}/stop`)
  const { use, limits } = await detail(id)
  expect([use, limits.memoryMb]).toEqual([null, 2048])
  expect((await listed(id)).use).toBeNull()
  expect((await app.ask('GET', `/v1/sandboxes/${id}/stats`)).body).toEqual({ everyMs: 10_000, samples: [] })
  expect((await listed(id)).isRunning).toBe(false)
})

test('samples of a sandbox come while it runs, and end with it', async () => {
  const id = await app.sandbox()
  await app.exec(id, 'true')
  const samples = async () => (await app.ask('GET', `/v1/sandboxes/${id}/stats`)).body.samples
  await until(async () => (await samples()).length > 0)
  expect((await samples())[0]).toEqual({
    at: expect.stringMatching(/Z$/),
    memoryBytes: expect.any(Number),
    diskBytes: expect.any(Number),
    cpus: null,
    processes: expect.any(Number),
  })
  await app.ask('DELETE', `/v1/sandboxes/${id}`)
  expect((await app.ask('GET', `/v1/sandboxes/${id}/stats`)).status).toBe(404)
})

/** A backend whose environments count how often they are asked. */
function countingBackend(usage: () => Promise<EnvironmentUsage>) {
  const running = new Set<string>()
  const asked: string[] = []
  const looks: number[] = []
  const backend = {
    name: 'fake',
    listRunning: () => {
      looks.push(running.size)
      return [...running]
    },
    open: async (id: string) => ({
      id,
      usage: () => {
        asked.push(id)
        return usage()
      },
    }),
  } as unknown as Backend
  return { running, asked, looks, backends: new Map([['fake', backend]]) }
}

test('only those that run are asked, a few side by side, and one that hangs holds nobody up', async () => {
  let open = 0
  let most = 0
  const { running, asked, backends } = countingBackend(async () => {
    most = Math.max(most, ++open)
    await Promise.resolve()
    open--
    return { memoryBytes: 1 }
  })
  const places = Array.from({ length: 10_000 }, (_, index) => ({ backend: 'fake', environmentId: `env_${index}` }))
  for (const { environmentId } of places.slice(0, 100)) running.add(environmentId)
  const uses = createUses(backends)
  const found = await uses.now(places)
  expect([found.filter(use => use !== undefined).length, asked.length, most <= 8]).toEqual([100, 100, true])
  await Promise.all([uses.now(places), uses.now(places)])
  expect(asked.length).toBe(100)
  uses.close()

  const hanging = countingBackend(() => new Promise(() => {}))
  hanging.running.add('env_0')
  const late = createUses(hanging.backends)
  expect(await late.now(places.slice(0, 1))).toEqual([undefined])
  late.close()
})

test('sampling ends when nothing runs, and begins with the next use', async () => {
  const { running, looks, backends } = countingBackend(async () => ({ memoryBytes: 1, cpuMs: 5 }))
  const uses = createUses(backends, { everyMs: 5 })
  const place = { backend: 'fake', environmentId: 'env_1' }
  running.add('env_1')
  uses.note(place)
  await until(async () => uses.samples('env_1').length > 0)
  running.clear()
  const before = looks.length
  await until(async () => looks.length > before)
  const last = looks.length
  // Ten times as long as it would take.
  await Bun.sleep(50)
  expect(looks.length).toBe(last)
  uses.note(place)
  await until(async () => looks.length > last)
  uses.close()
})
