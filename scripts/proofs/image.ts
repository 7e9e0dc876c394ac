// Builds packages/Dockerfile from dist/packages on a Debian of debootstrap, with an engine of its own, and talks to an agent in it:
// bun test ./scripts/proofs/image.ts (as root, after scripts/package)
import { beforeAll, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { useDockerd } from '../../test/support/dockerd.ts'
import { until } from '../../test/support/until.ts'
import { root } from '../packages/release.ts'
import { run } from '../packages/run.ts'

const packages = 'ca-certificates,e2fsprogs'
const cached = join(root, '.cache/debian-bookworm-image.tar')
const unconfined = ['seccomp', 'apparmor', 'systempaths'].flatMap(name => ['--security-opt', `${name}=unconfined`])
const key = `proof-${crypto.randomUUID()}`

const dockerd = useDockerd()
const docker = (...words: string[]) =>
  run(['docker', ...words], {
    env: { DOCKER_HOST: dockerd.host, DOCKER_BUILDKIT: '0', DOCKER_CONFIG: dockerd.directory },
  })

beforeAll(async () => {
  if (!existsSync(cached)) {
    const system = join(dockerd.directory, 'system')
    await run(['debootstrap', '--variant=minbase', `--include=${packages}`, 'bookworm', system])
    await run(['tar', '-C', system, '--exclude=./var/cache/apt/archives/*.deb', '-cf', cached, '.'])
  }
  await docker('import', cached, 'debian:base')
  await docker(
    'build',
    '--network',
    'none',
    '--build-arg',
    'BASE=debian:base',
    '--tag',
    'threadbox',
    join(root, 'dist/packages'),
  )
}, 400_000)
test('it serves as an ordinary user, makes a sandbox, and ends with 0', async () => {
  const id = (
    await docker(
      'run',
      '--detach',
      '--network',
      'none',
      ...unconfined,
      '--env',
      `THREADBOX_API_KEY=${key}`,
      'threadbox',
    )
  ).trim()
  await until(async () => (await docker('logs', id)).includes('threadbox listening on http://0.0.0.0:7070'))
  expect(await docker('exec', id, 'id', '-un')).toBe('threadbox\n')
  const chat = ['exec', id, 'sh', '-c', 'THREADBOX_API_KEY=$0 threadbox chat echo "\\$ echo it is \\$(hostname)"', key]
  expect(await docker(...chat)).toContain('it is sandbox')
  await docker('stop', '--time', '30', id)
  expect(await docker('inspect', '--format', '{{.State.ExitCode}}', id)).toBe('0\n')
  console.log(await docker('images', '--format', '{{.Repository}} {{.Size}}'))
}, 200_000)

test('without what it needs for sandboxes it says what is missing', async () => {
  const id = (
    await docker('run', '--detach', '--network', 'none', '--env', `THREADBOX_API_KEY=${key}`, 'threadbox')
  ).trim()
  expect((await docker('wait', id)).trim()).not.toBe('0')
  const logs = await run(['sh', '-c', 'docker logs "$0" 2>&1', id], { env: { DOCKER_HOST: dockerd.host } })
  expect(logs).toMatch(/nsjail: .*not permitted/)
  expect(logs).toMatch(/--security-opt seccomp=unconfined/)
}, 200_000)
