import type { Backend } from '../plugin-api/index.ts'
import { describeConnect } from './connect.ts'
import { describeOwnEgress, describeProxy } from './egress.ts'
import { describeEnvironment } from './environment.ts'
import { describeFiles } from './files.ts'
import type { Kit } from './kit.ts'
import { describeProcesses } from './processes.ts'
import { describeSpawn } from './spawn.ts'
import { type ServeProxy, subjectOf } from './subject.ts'

/**
 * What every backend promises. It runs unchanged on each: a gap found in one becomes a line of a part. `openBackend` is
 * called again for a restart, on the same data. All that the backend has at the end is destroyed.
 */
export function describeBackend(
  kit: Kit,
  name: string,
  openBackend: (serveProxy: ServeProxy) => Promise<Backend>,
  egress: Backend['egress'] = 'proxy',
): void {
  kit.describe(`backend ${name}`, () => {
    const subject = subjectOf(openBackend)
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
  })
}
