import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { importDebian } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { processesNamed } from '../support/leftovers.ts'
import { command, patiently, Server, startServer } from '../support/server.ts'
import { readChunks, typesIn } from '../support/sse.ts'
import { until } from '../support/until.ts'
import { leaveCounter, visitCounter } from './background.ts'
import { dice, seed } from './random.ts'

patiently()

// Before the engine goes.
afterAll(() => server.close())
const dockerd = useDockerd()
const env = { DOCKER_HOST: dockerd.host }
// Containers are counted here: none is made ahead.
const flags = ['--backend', 'docker', '--docker-image', 'debian', '--spares', '0']
const server = new Server({ flags, env })
beforeAll(async () => {
  await importDebian(dockerd.api)
  await server.start()
}, 300_000)

const nap = `4343.${process.pid}`
/** Environments that have a container. */
const containers = async (): Promise<string[]> =>
  (await dockerd.api.containers()).flatMap(({ Labels }) => Labels['threadbox.environment'] ?? []).sort()
/** Environments of the sandboxes that the server knows. */
const known = async (): Promise<string[]> =>
  (await server.ask('GET', '/v1/sandboxes')).body.sandboxes.map((each: { sandboxId: string }) => each.sandboxId).sort()

test('what a command left behind outlives a stop and a kill of the server, and what runs in the foreground does not', async () => {
  const sandboxId = await server.sandbox()
  await leaveCounter(server, sandboxId)
  expect(await visitCounter(server, sandboxId)).toBe(1)
  expect(await server.stop()).toBe(0)
  await server.start()
  expect(await visitCounter(server, sandboxId)).toBe(2)
  const exec = server.exec(sandboxId, `setsid sleep ${nap} & sleep ${nap}`).catch(() => 'lost')
  await until(() => processesNamed(nap).length === 2)
  await server.kill()
  expect(await exec).toBe('lost')
  await until(() => processesNamed(nap).length === 0)
  await server.start()
  expect(await visitCounter(server, sandboxId)).toBe(3)
})

test('a server with another backend serves the sandboxes of this one', async () => {
  const sandboxId = await server.sandbox()
  await server.stop()
  const other = await startServer({ env, dataDirectory: server.dataDirectory, apiKey: server.key })
  expect((await other.exec(sandboxId, 'cat /proc/1/comm')).stdout).toBe('ld-linux-x86-64\n')
  await other.stop()
  await server.start()
})

test('an engine that is killed fails a run and an exec at once; the server answers 503, and recovers by itself', async () => {
  const [sandboxId, unwanted] = [await server.sandbox(), await server.sandbox()]
  await server.exec(sandboxId, 'echo kept >/home/user/f')
  const reply = readChunks(await server.chat(`$ sleep ${nap}`, { sandboxId }))
  const exec = server.ask('POST', `/v1/sandboxes/${sandboxId}/exec`, { command: `sleep ${nap}` })
  await until(() => processesNamed(nap).length === 2)
  await dockerd.kill()
  expect(typesIn(await reply)).toContain('tool-output-error')
  expect(await exec).toMatchObject({ status: 503, body: { error: { code: 'sandbox_unavailable' } } })
  const asking = [
    server.ask('POST', `/v1/sandboxes/${sandboxId}/exec`, { command: 'true' }),
    server.ask('POST', '/v1/sandboxes', { agent: 'echo' }),
    server.ask('DELETE', `/v1/sandboxes/${unwanted}`),
  ]
  expect((await Promise.all(asking)).map(({ status }) => status)).toEqual([503, 503, 503])
  expect((await server.ask('GET', '/health')).status).toBe(200)
  await dockerd.start()
  await until(() => processesNamed(nap).length === 0)
  expect((await server.exec(sandboxId, 'cat f')).stdout).toBe('kept\n')
  await until(async () => (await containers()).join() === (await known()).join())
})

test('a server that starts while its engine is down waits for it', async () => {
  const sandboxId = await server.sandbox()
  await server.stop()
  await dockerd.stop()
  await server.start()
  expect((await server.ask('POST', `/v1/sandboxes/${sandboxId}/exec`, { command: 'true' })).status).toBe(503)
  await dockerd.start()
  expect((await server.exec(sandboxId, 'echo back')).stdout).toBe('back\n')
})

const roll = dice(seed)
const moments = Array.from({ length: 5 }, () => ({ ms: roll(500) }))

describe.each(moments)(`killed after $ms ms (seed ${seed})`, ({ ms }) => {
  test('of making and deleting sandboxes: they are whole, or nothing of them is left', async () => {
    const sandboxId = await server.sandbox()
    const asking = [server.ask('DELETE', `/v1/sandboxes/${sandboxId}`), server.sandbox()].map(each =>
      each.catch(() => {}),
    )
    await Bun.sleep(ms)
    await server.kill()
    await Promise.all(asking)
    await server.start()
    await until(async () => (await containers()).join() === (await known()).join())
    for (const id of await known()) expect((await server.exec(id, 'echo whole')).stdout).toBe('whole\n')
  })
})

test('a server with another backend does without an engine, and says nothing of it', async () => {
  await using other = await startServer({ env: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } })
  await other.exec(await other.sandbox(), 'true')
  expect(other.stderr).not.toMatch(/docker/i)
})

test('doctor and serve say what is wrong with an engine', async () => {
  const nowhere = { DOCKER_HOST: 'unix:///nowhere/docker.sock' }
  const args = ['--data-dir', server.dataDirectory, ...flags]
  const good = await command(['doctor', ...args], { env })
  expect([good.code, good.stderr]).toEqual([0, ''])
  expect(good.stdout).toMatch(/^ok +containers: start, here one of debian, and their guest answers$/m)
  const bad = await command(['doctor', ...args], { env: nowhere })
  expect(bad.code).toBe(1)
  expect(bad.stdout).toMatch(
    /^FAILED +engine: The Docker engine at unix:\/\/\/nowhere\/docker.sock does not answer: \w+\n +remedy: Start Docker/,
  )
})
