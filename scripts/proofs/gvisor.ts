/**
 * The contract of backends, the escapes and what must not be left, on the docker backend with gVisor: unchanged, but that the
 * runtime is runsc. It takes minutes, and an engine of its own; root is needed.
 *
 * usage: bun test --timeout 120000 ./scripts/proofs/gvisor.ts   after scripts/build
 */
import { afterAll, beforeAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDockerBackend } from '../../plugins/docker/index.ts'
import type { PluginContext } from '../../src/plugin-api/index.ts'
import { describeBackend } from '../../test/backends/contract.ts'
import { describeEscapes } from '../../test/backends/escapes.ts'
import { importDebian } from '../../test/support/docker-images.ts'
import { useDockerd } from '../../test/support/dockerd.ts'
import { findRunsc, gvisorRuntime } from '../../test/support/gvisor.ts'

let runsc = ''
const dockerd = useDockerd({
  async before() {
    runsc = await findRunsc()
  },
  settings: () => gvisorRuntime(runsc),
})
beforeAll(() => importDebian(dockerd.api), 300_000)

const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-gvisor-'))
afterAll(() => rmSync(dataDirectory, { recursive: true, force: true }))

const open = async (serveProxy: PluginContext['serveProxy']) =>
  createDockerBackend({
    dataDirectory,
    image: 'debian',
    runtimes: ['runsc'],
    variables: { DOCKER_HOST: dockerd.host },
    executable: join(import.meta.dir, '../../dist/threadbox'),
    serveProxy,
    log: line => console.error(line),
  })

describeBackend('docker on gVisor', open)
describeEscapes('docker on gVisor', open)
