import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { importBusybox } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { patiently, Server } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

// Before the engine goes.
afterAll(() => server.close())
const dockerd = useDockerd()
const server = new Server({
  flags: ['--backend', 'docker', '--docker-image', 'busybox', '--spares', '0'],
  env: { DOCKER_HOST: dockerd.host },
})
beforeAll(async () => {
  await importBusybox(dockerd.api)
  await server.start()
}, 300_000)

const filesOf = (name: string): string[] => {
  const directory = join(server.dataDirectory, name)
  return existsSync(directory) ? readdirSync(directory).sort() : []
}
/** Names of the images of snapshots. */
const images = async (): Promise<string[]> =>
  (await dockerd.api.ask('GET', '/images/json?all=1')).flatMap(({ RepoTags }: { RepoTags: string[] | null }) =>
    (RepoTags ?? []).filter(tag => tag.startsWith('threadbox-snapshot:')),
  )
/** Environments that have a container, and what these do. */
const containers = async (): Promise<{ id: string; state: string }[]> =>
  (await dockerd.api.containers()).flatMap(({ Labels, State }) => {
    const id = Labels['threadbox.environment']
    return id ? [{ id, state: State }] : []
  })
/** Whether the engine has made an image of a container since a moment. */
async function hasCommitted(since: number): Promise<boolean> {
  const filters = encodeURIComponent(JSON.stringify({ type: ['container'], event: ['commit'] }))
  const until = Math.ceil(Date.now() / 1000)
  const events = await fetch(`http://docker/events?since=${since}&until=${until}&filters=${filters}`, {
    unix: dockerd.socket,
  })
  return (await events.text()).includes('commit')
}
const known = async (): Promise<{ id: string; sandboxId: string }[]> =>
  (await server.ask('GET', '/v1/sandboxes')).body.sandboxes

test('kill -9 in the middle of a snapshot on docker leaves nothing of it, and the sandbox goes on', async () => {
  const id = await server.sandbox()
  await server.exec(id, 'head -c 400000000 /dev/zero | tr "\\0" a > big; echo kept > file')
  const begunAt = Math.floor(Date.now() / 1000)
  const taking = server.ask('POST', `/v1/sandboxes/${id}/snapshots`, { name: 'half' }).catch(() => undefined)
  await until(async () => (await containers()).some(({ state }) => state === 'paused'))
  await server.kill()
  await taking
  await server.start()
  expect((await server.ask('GET', '/v1/snapshots')).body.snapshots).toEqual([])
  expect(await server.exec(id, 'echo more >> file; cat file')).toMatchObject({ stdout: 'kept\nmore\n' })
  // The engine goes on with the image that the killed server has asked it for.
  await until(() => hasCommitted(begunAt))
  await until(async () => (await images()).length === 0 && filesOf('docker-snapshots').length === 0)
  expect((await containers()).map(({ state }) => state)).toEqual(['running'])
  // The name is free again.
  expect((await server.ask('POST', `/v1/sandboxes/${id}/snapshots`, { name: 'half' })).status).toBe(201)
  expect(await images()).toHaveLength(1)
  await server.ask('DELETE', '/v1/snapshots/half')
  await server.ask('DELETE', `/v1/sandboxes/${id}`)
  expect(await images()).toEqual([])
})

test('kill -9 in the middle of a fork on docker leaves whole sandboxes alone, and nothing beside them', async () => {
  const id = await server.sandbox()
  await server.exec(id, 'echo shared > file')
  const forking = server.ask('POST', `/v1/sandboxes/${id}/fork`, { count: 8 }).catch(() => undefined)
  await until(async () => (await containers()).length > 3)
  await server.kill()
  await forking
  await server.start()
  const sandboxes = await known()
  const whole = sandboxes.map(({ sandboxId }) => sandboxId).sort()
  await until(
    async () =>
      (await containers())
        .map(each => each.id)
        .sort()
        .join() === whole.join(),
  )
  for (const each of sandboxes) expect((await server.exec(each.id, 'cat file')).stdout).toBe('shared\n')
  for (const each of sandboxes) expect((await server.ask('DELETE', `/v1/sandboxes/${each.id}`)).status).toBe(204)
  await until(async () => (await images()).length === 0 && filesOf('docker-snapshots').length === 0)
})

test("a fork on docker shares no id, token or variable of its guest with its origin, and a stop changes its first process's start", async () => {
  const id = await server.sandbox()
  const facts = 'tr "\\0" "\\n" < /proc/1/environ; env | grep -i -e token -e id='
  const before = (await server.exec(id, facts)).stdout
  const { forks } = (await server.ask('POST', `/v1/sandboxes/${id}/fork`, {})).body
  const fork = forks[0].sandbox.id
  const after = (await server.exec(fork, facts)).stdout
  const random = (text: string) => new Set(text.match(/[0-9a-f]{16,}/g) ?? [])
  expect([...random(before).intersection(random(after))]).toEqual([])
  // Of each container, as its engine has it.
  const made = await dockerd.api.containers()
  const tokens = await Promise.all(
    made.map(async ({ Id }) => {
      const { Config } = await dockerd.api.ask('GET', `/containers/${Id}/json`)
      return Config.Env.find((each: string) => each.startsWith('THREADBOX_TOKEN=') && each.length > 60)
    }),
  )
  expect([tokens.filter(Boolean).length, new Set(tokens).size]).toEqual([2, 2])

  const started = "cut -d' ' -f22 /proc/1/stat"
  const boot = 'cat /proc/sys/kernel/random/boot_id; cat /home/user/kept'
  await server.exec(id, 'echo here > /home/user/kept')
  const [first, firstBoot] = [(await server.exec(id, started)).stdout, (await server.exec(id, boot)).stdout]
  await server.ask('POST', `/v1/sandboxes/${id}/stop`)
  expect((await server.exec(id, boot)).stdout).toBe(firstBoot)
  expect(Number((await server.exec(id, started)).stdout)).toBeGreaterThan(Number(first))
  for (const each of [id, fork]) await server.ask('DELETE', `/v1/sandboxes/${each}`)
})
