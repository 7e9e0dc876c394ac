/** The backend docker beside Docker's own tools, on the engine that DOCKER_HOST names, with the image of DOCKER_IMAGE. */
import { call, inDirectory, serve } from './server.ts'
import { atMost, line, report, timed } from './table.ts'

const ROUNDS = 5
const image = process.env.DOCKER_IMAGE ?? 'debian:12-slim'
const { DOCKER_HOST = 'unix:///var/run/docker.sock' } = process.env

const dockerExec = line('docker exec: true')
const execs = line('exec over HTTP: true, sandbox warm', { baseline: dockerExec, goal: atMost(4, 'ms') })
const dockerRun = line('docker run --rm: true')
const firsts = line('create a sandbox, then its first exec', { baseline: dockerRun })
const deletes = line('delete a sandbox')

async function docker(...args: string[]): Promise<void> {
  const child = Bun.spawn(['docker', ...args], {
    env: { ...process.env, DOCKER_HOST },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if ((await child.exited) !== 0) throw new Error(`docker ${args[0]} failed`)
}

await inDirectory(async directory => {
  const { url, stop } = await serve(directory, ['--backend', 'docker', '--docker-image', image], { DOCKER_HOST })
  const create = async () => JSON.parse(await call(url, 'POST', '/v1/sandboxes', { agent: 'echo' }))
  const exec = (id: string) => call(url, 'POST', `/v1/sandboxes/${id}/exec`, { command: 'true' })
  // The first one brings the guest.
  const { id, sandboxId } = await create()
  await exec(id)
  for (let round = 0; round < ROUNDS; round++) {
    await timed(execs, 100, () => exec(id))
    await timed(dockerExec, 10, () => docker('exec', `threadbox-${sandboxId}`, 'true'))
    const made: string[] = []
    await timed(firsts, 5, async () => {
      const sandbox = await create()
      made.push(sandbox.id)
      await exec(sandbox.id)
    })
    await timed(dockerRun, 5, () => docker('run', '--rm', '--network', 'none', image, 'true'))
    await timed(deletes, 5, () => call(url, 'DELETE', `/v1/sandboxes/${made.pop()}`))
  }
  await call(url, 'DELETE', `/v1/sandboxes/${id}`)
  await stop()
})
report([dockerExec, execs, dockerRun, firsts, deletes])
