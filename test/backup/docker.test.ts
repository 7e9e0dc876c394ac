import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
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
