import { afterAll, beforeAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDockerBackend } from '../../plugins/docker/index.ts'
import { importDebian } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { describeBackend } from './contract.ts'

const dockerd = useDockerd()
// Debian may have to be brought first.
beforeAll(() => importDebian(dockerd.api), 300_000)

const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-contract-'))
afterAll(() => rmSync(dataDirectory, { recursive: true, force: true }))

describeBackend('docker', async serveProxy =>
  createDockerBackend({
    dataDirectory,
    image: 'debian',
    variables: { DOCKER_HOST: dockerd.host },
    executable: join(import.meta.dir, '../../dist/threadbox'),
    serveProxy,
    log: line => console.error(line),
  }),
)
