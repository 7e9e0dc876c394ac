import type { Backend } from '../plugin-api/index.ts'
import { describeConnect } from './connect.ts'
import { describeOwnEgress, describeProxy } from './egress.ts'
import { describeEnvironment } from './environment.ts'
import { describeFiles } from './files.ts'
import type { Kit } from './kit.ts'
import { describeProcesses } from './processes.ts'
import { describeSnapshots } from './snapshots.ts'
import { describeSpawn } from './spawn.ts'
import { createSubject, type ServeProxy } from './subject.ts'

/**
 * Tests what every backend promises. The same tests run on each backend. `openBackend` is called again for a restart, on
 * the same data. At the end, all environments of the backend are destroyed.
 */
export function describeBackend(
  kit: Kit,
  name: string,
  openBackend: (serveProxy: ServeProxy) => Promise<Backend>,
  egress: Backend['egress'] = 'proxy',
): void {
  kit.describe(`backend ${name}`, () => {
    const subject = createSubject(openBackend)
    kit.beforeAll(async () => {
      subject.backend = await subject.open()
      subject.environment = await subject.create()
    }, 60_000)

    kit.afterAll(async () => {
      const { backend } = subject
      for (const id of await backend.list()) await (await backend.open(id))?.destroy()
      await backend.close()
    }, 60_000)

    describeSpawn(kit, subject)
    describeFiles(kit, subject)
    describeConnect(kit, subject)
    if (egress === 'proxy') describeProxy(kit, subject)
    else describeOwnEgress(kit, subject)
    describeEnvironment(kit, subject)
    describeProcesses(kit, subject)
    describeSnapshots(kit, subject)
  })
}
