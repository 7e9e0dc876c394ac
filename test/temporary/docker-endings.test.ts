import { beforeAll, describe, expect, test } from 'bun:test'
import { importBusybox } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { processesNamed } from '../support/leftovers.ts'
import { until } from '../support/until.ts'
import { useOneOffs } from './support.ts'

const oneOffs = useOneOffs()
const dockerd = useDockerd()
beforeAll(() => importBusybox(dockerd.api), 60_000)

const env = { DOCKER_HOST: dockerd.host }
const flags = ['--backend', 'docker', '--docker-image', 'busybox']
const names = async () => (await dockerd.api.containers()).flatMap(({ Names }) => Names as string[])

describe.if(process.getuid?.() === 0)('exec on docker', () => {
  test.each([
    ['brings the guest', '/threadbox-guest-filler'],
    ['tries the engine', '/threadbox-doctor-'],
    ['has its sandbox', '/threadbox-env_'],
  ])('killed while it %s, it leaves no container', async (_, name) => {
    const child = oneOffs.spawn(['exec', ...flags, '--', 'sleep 7454'], { env })
    await until(async () => (await names()).some(each => each.startsWith(name)), name)
    child.kill('SIGKILL')
    await child.exited
    await until(() => processesNamed('guard').length === 0, 'the guard is done')
    expect(await names()).toEqual([])
    expect(await oneOffs.left()).toEqual([])
  })

  test('works twice at once on an engine that has had none', async () => {
    await dockerd.api.ask('DELETE', '/volumes/threadbox-guest')
    const both = await Promise.all([1, 2].map(() => oneOffs.run(['exec', ...flags, '--', 'echo $GREETING'], { env })))
    expect(both).toEqual(Array(2).fill({ code: 0, stdout: 'hello you\n', stderr: '' }))
    expect(await names()).toEqual([])
  })
})
