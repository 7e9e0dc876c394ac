import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { importBusybox } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { command, patiently, startServer, temporaryDirectory } from '../support/server.ts'

patiently()
const scratch = temporaryDirectory()
afterAll(() => rmSync(scratch, { recursive: true, force: true }))
const [here, there] = [useDockerd(), useDockerd()]
const flags = ['--backend', 'docker', '--docker-image', 'withvolume']

beforeAll(async () => {
  await importBusybox(here.api)
  const { Id } = await here.api.ask('POST', '/containers/create', JSON.stringify({ Image: 'busybox', Cmd: ['true'] }))
  await here.api.ask('POST', `/commit?container=${Id}&repo=withvolume`, JSON.stringify({ Volumes: { '/srv/own': {} } }))
  await here.api.ask('DELETE', `/containers/${Id}`)
})

const fill =
  'head -c 300000 /dev/urandom >data; mkdir deep; ln data deep/hard; ln -s ../data deep/link; chmod 4750 data; chown 1234:99 deep; ' +
  'rm /tools/yes; echo volume >/srv/own/file; echo $GREETING'
const look =
  'find /home/user /srv/own -exec stat -c "%n %h %a %u %g %s" {} + | sort; sha256sum data; cat /srv/own/file; ls /tools/yes; echo $GREETING'

test('sandboxes on docker are restored on another engine as they were, running and stopped ones', async () => {
  const server = await startServer({ flags, env: { DOCKER_HOST: here.host } })
  const [running, stopped] = [await server.sandbox({ envs: { GREETING: 'seen' } }), await server.sandbox()]
  const before = []
  for (const id of [running, stopped]) {
    await server.exec(id, fill)
    before.push((await server.exec(id, look)).stdout)
  }
  await server.ask('POST', `/v1/sandboxes/${stopped}/stop`)
  await server.exec(running, '(while :; do sleep 1; done) >/dev/null 2>&1 & echo $! >/tmp/pid')
  const images = await here.api.ask('GET', '/images/json?all=1')
  const backup = join(scratch, 'one.tar.zst')
  const env = { DOCKER_HOST: here.host }
  const made = await command(['backup', 'create', backup, '--data-dir', server.dataDirectory, '--json'], { env })
  expect([made.code, made.stderr]).toEqual([0, ''])
  const { sandboxes } = JSON.parse(made.stdout)
  const frozenMs = (id: string) => sandboxes.find((each: { id: string }) => each.id === id).frozenMs
  expect([frozenMs(running) > 0, frozenMs(stopped)]).toEqual([true, 0])
  // What ran goes on, and the engine has no image more than before.
  expect(await server.exec(running, 'kill -0 $(cat /tmp/pid)')).toMatchObject({ exitCode: 0 })
  expect(await here.api.ask('GET', '/images/json?all=1')).toHaveLength(images.length)

  // A backup that was killed has left it paused.
  const { environmentId } = sandboxes.find((each: { id: string }) => each.id === running)
  writeFileSync(join(server.dataDirectory, 'docker-copies', environmentId), '999999999')
  await server.kill()
  await here.api.ask('POST', `/containers/threadbox-${environmentId}/pause`)
  await server.start()
  expect(await server.exec(running, 'kill -0 $(cat /tmp/pid)')).toMatchObject({ exitCode: 0 })

  const data = join(scratch, 'new')
  const restored = await command(['backup', 'restore', backup, '--data-dir', data])
  expect([restored.code, restored.stderr]).toEqual([0, ''])
  const other = await startServer({ flags, env: { DOCKER_HOST: there.host }, dataDirectory: data })
  for (const [index, id] of [running, stopped].entries()) {
    expect(await other.exec(id, look)).toMatchObject({ stdout: before[index], exitCode: 0 })
  }
  await Promise.all([other.close(), server.close()])
  expect(await there.api.ask('GET', '/images/json?all=1')).toEqual([])
})

test('snapshots on docker are in a backup, and sandboxes are made of them on another engine and on the same', async () => {
  const env = { DOCKER_HOST: here.host }
  await using server = await startServer({ flags: [...flags, '--spares', '0'], env })
  const id = await server.sandbox({ envs: { GREETING: 'seen' } })
  await server.exec(id, fill)
  const before = (await server.exec(id, look)).stdout
  await server.ask('POST', `/v1/sandboxes/${id}/snapshots`, { name: 'kept' })
  await server.exec(id, 'rm -r /home/user/* /srv/own/file')
  // What forks are made of is a snapshot too, which nobody can use.
  const { forks } = (await server.ask('POST', `/v1/sandboxes/${id}/fork`, {})).body
  const images = await here.api.ask('GET', '/images/json?all=1')
  const backup = join(scratch, 'snapshots.tar.zst')
  const made = await command(['backup', 'create', backup, '--data-dir', server.dataDirectory, '--json'], { env })
  expect([made.code, made.stderr]).toEqual([0, ''])
  const { snapshots } = JSON.parse(made.stdout)
  const [{ id: kept }] = (await server.ask('GET', '/v1/snapshots')).body.snapshots
  expect(snapshots).toEqual([{ id: kept, backend: 'docker', at: expect.any(String) }])
  expect(await here.api.ask('GET', '/images/json?all=1')).toHaveLength(images.length)
  const verified = await command(['backup', 'verify', backup, '--temporary', scratch])
  expect([verified.code, verified.stderr]).toEqual([0, ''])

  for (const { api, host } of [there, here]) {
    const data = join(scratch, `restored-${host === here.host ? 'here' : 'there'}`)
    expect((await command(['backup', 'restore', backup, '--data-dir', data])).code).toBe(0)
    const other = await startServer({
      flags: [...flags, '--spares', '0'],
      env: { DOCKER_HOST: host },
      dataDirectory: data,
    })
    const copies = await Promise.all([0, 1].map(() => other.sandbox({ agent: undefined, snapshot: 'kept' })))
    for (const copy of copies) expect(await other.exec(copy, look)).toMatchObject({ stdout: before, exitCode: 0 })
    expect(existsSync(join(data, 'docker-snapshots', kept, 'image.tar'))).toBe(false)
    // A backup of what was restored has it as well.
    const again = ['backup', 'create', join(scratch, 'again.tar.zst'), '--data-dir', data, '--sandboxes', copies[0]!]
    expect(
      JSON.parse((await command([...again, '--json'], { env: { DOCKER_HOST: host } })).stdout).snapshots,
    ).toHaveLength(1)
    rmSync(join(scratch, 'again.tar.zst'))
    for (const copy of copies) await other.ask('DELETE', `/v1/sandboxes/${copy}`)
    expect((await other.ask('DELETE', '/v1/snapshots/kept')).status).toBe(204)
    expect(readdirSync(join(data, 'docker-snapshots'))).toEqual([])
    // The sandboxes of the first server cannot be restored beside it.
    await other.stop()
    if (host !== here.host) expect(await api.ask('GET', '/images/json?all=1')).toEqual([])
  }
  // The first server still has its own.
  const copy = await server.sandbox({ agent: undefined, snapshot: 'kept' })
  expect((await server.exec(copy, look)).stdout).toBe(before)
  for (const each of [copy, id, forks[0].sandbox.id]) await server.ask('DELETE', `/v1/sandboxes/${each}`)
  await server.ask('DELETE', '/v1/snapshots/kept')
})

test('a backup with an image that lacks a layer is refused by verify', async () => {
  const directory = join(scratch, 'half')
  const { checkCopies } = await import('../../plugins/docker/index.ts')
  const copy = join(directory, 'docker-snapshots', 'snap_x')
  mkdirSync(copy, { recursive: true })
  const createdWith = { image: 'x', limits: {}, hasQuota: false, hasSeccomp: false, hasVolumes: false, unlimited: [] }
  writeFileSync(join(copy, 'container.json'), JSON.stringify({ createdWith, env: {}, volumes: [] }))
  await expect(checkCopies(directory)).rejects.toThrow('snap_x is damaged: it has no image.tar')
  writeFileSync(join(directory, 'manifest.json'), JSON.stringify([{ Config: 'manifest.json', Layers: ['blobs/one'] }]))
  await Bun.$`tar -C ${directory} -cf ${join(copy, 'image.tar')} manifest.json`
  await expect(checkCopies(directory)).rejects.toThrow('snap_x is damaged: the image of the backup lacks blobs/one')
})
