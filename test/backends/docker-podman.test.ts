import { afterAll, beforeAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDockerBackend } from '../../plugins/docker/index.ts'
import { importDebian } from '../support/docker-images.ts'
import { usePodman } from '../support/podman.ts'
import { openTestSandbox, type SandboxInit } from '../support/sandbox.ts'
import { describeBackend } from './contract.ts'
import { describeDirect } from './direct.ts'
import { describeNames } from './names.ts'

const podman = usePodman()
// Debian may have to be brought first.
beforeAll(() => importDebian(podman.api), 300_000)

const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-contract-'))
afterAll(() => rmSync(dataDirectory, { recursive: true, force: true }))

describeBackend('docker on Podman', async serveProxy =>
  createDockerBackend({
    dataDirectory,
    image: 'debian',
    variables: { DOCKER_HOST: podman.host },
    executable: join(import.meta.dir, '../../dist/threadbox'),
    serveProxy,
    log: line => console.error(line),
  }),
)

const open = (init: SandboxInit = {}) =>
  openTestSandbox({
    ...init,
    createBackend: options =>
      createDockerBackend({ ...options, image: 'debian', variables: { DOCKER_HOST: podman.host } }),
  })
describeDirect('connections on docker on Podman', open)
describeNames('names on docker on Podman', open)
