import { beforeAll } from 'bun:test'
import { join } from 'node:path'
import { docker } from '../../plugins/docker/index.ts'
import { echo } from '../../plugins/echo/index.ts'
import { importDebian } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { describeProbes } from './probes.ts'

const dockerd = useDockerd()
// Debian may have to be brought first.
beforeAll(() => importDebian(dockerd.api), 300_000)

const executable = join(import.meta.dir, '../../dist/threadbox')
const plugins = [docker({ executable, image: 'debian', variables: { DOCKER_HOST: dockerd.host } }), echo]

describeProbes('docker on runc', { backend: 'docker', plugins }, [
  ...(process.arch === 'x64' ? [] : ['system-calls/x32']),
  ...['proc/memory-lists', 'guest/settings-in-proc', 'limits/files', 'limits/terminals'],
])
