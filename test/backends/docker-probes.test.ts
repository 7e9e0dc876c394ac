import { afterAll, beforeAll } from 'bun:test'
import { importDebian } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { describeProbes } from './probes.ts'

const dockerd = useDockerd()
const before = process.env.DOCKER_HOST
// Debian may have to be brought first.
beforeAll(async () => {
  await importDebian(dockerd.api)
  // Probes ask the engine too.
  process.env.DOCKER_HOST = dockerd.host
}, 300_000)
afterAll(() => {
  if (before === undefined) delete process.env.DOCKER_HOST
  else process.env.DOCKER_HOST = before
})

/** See docs/selftest.md for why. */
describeProbes('docker on runc', { backend: 'docker', settings: () => ['--docker-image', 'debian'] }, [
  ...['proc/memory-lists', 'guest/settings-in-proc', 'limits/files', 'limits/terminals', 'neighbours/shared-program'],
  ...['leftovers/mounts', 'leftovers/loop-devices', 'leftovers/cgroups'],
])
