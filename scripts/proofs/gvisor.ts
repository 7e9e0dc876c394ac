/**
 * The contract of backends and the probes of `threadbox selftest`, on the docker backend with gVisor: unchanged but for what docs/backends/gvisor.md
 * says is otherwise there. It takes minutes, and an engine of its own; root is needed.
 *
 * usage: bun test --timeout 120000 ./scripts/proofs/gvisor.ts   after scripts/build
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDockerBackend } from '../../plugins/docker/index.ts'
import { describeBackend } from '../../src/plugin-suite/backend.ts'
import type { Kit } from '../../src/plugin-suite/kit.ts'
import { describeProbes } from '../../test/backends/probes.ts'
import { importDebian } from '../../test/support/docker-images.ts'
import { useDockerd } from '../../test/support/dockerd.ts'
import { findRunsc, gvisorRuntime } from '../../test/support/gvisor.ts'
import { bunKit } from '../../test/support/kit.ts'

const runsc = await findRunsc()
const dockerd = useDockerd({ settings: () => gvisorRuntime(runsc.path) })
beforeAll(async () => {
  process.env.DOCKER_HOST = dockerd.host
  await importDebian(dockerd.api)
}, 300_000)

/** The tests of the contract that fail on gVisor, with the reason and the error. A test that passes there by now has to leave this list. */
const differences: Readonly<Record<string, { why: string; how: RegExp }>> = {
  'a fork bomb spares the environment, and dies with its timeout': {
    why: "the limit counts gVisor's own threads, so that the sandbox ends and starts again",
    how: /The connection to the sandbox was lost/,
  },
  'is the only way out: regression': {
    why: 'the guest answers for names, whatever resolver is connected to',
    how: /\+ "1\.1\.1\.1\/53\n\+ "/,
  },
  'interrupts the job in front by Ctrl-C, and not the shell': {
    why: 'a terminal does not echo ^C',
    how: /Expected to contain: "\^C"[\s\S]*sleep 7111\\r\\n\\r\\n# exit 5/,
  },
}

const testOrDifference = (title: string, run: () => void | Promise<void>, timeoutMs?: number): void => {
  const difference = differences[title]
  if (!difference) return void test(title, run, timeoutMs)
  test(
    `differs, ${difference.why}: ${title}`,
    async () => {
      const failure = await Promise.resolve(run()).then(
        () => 'it holds',
        (error: unknown) => Bun.stripANSI(error instanceof Error ? Bun.inspect(error) : String(error)),
      )
      expect(failure).toMatch(difference.how)
    },
    timeoutMs,
  )
}
const kit: Kit = {
  ...bunKit,
  test: Object.assign(testOrDifference, {
    each: <Row extends readonly unknown[]>(rows: readonly Row[]) => bunKit.test.each(rows),
    if: (isSo: boolean) => bunKit.test.if(isSo),
  }),
}

const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-gvisor-'))
afterAll(() => rmSync(dataDirectory, { recursive: true, force: true }))

describeBackend(kit, 'docker on gVisor', async serveProxy =>
  createDockerBackend({
    dataDirectory,
    image: 'debian',
    runtimes: ['runsc'],
    variables: { DOCKER_HOST: dockerd.host },
    executable: join(import.meta.dir, '../../dist/threadbox'),
    serveProxy,
    log: line => console.error(line),
  }),
)
/** Each of these tries a kernel that is the sandbox's own, or what docker does not limit: the probes say which. */
const excused = [
  ...['namespaces/own', 'proc/settings', 'proc/sysrq', 'proc/cgroups', 'devices/fuse', 'devices/tunnels'],
  ...['guest/settings-in-proc', 'limits/processes', 'limits/files', 'limits/terminals', 'limits/oom-score'],
  ...[
    'limits/priority',
    'neighbours/shared-program',
    'leftovers/loop-devices',
    'leftovers/cgroups',
    'leftovers/mounts',
  ],
]
const settings = () => ['--docker-image', 'debian', '--docker-runtime', 'runsc']
describeProbes('docker on gVisor', { backend: 'docker', runtime: 'runsc', settings }, excused)
