import { messageOf } from '../../src/errors.ts'
import type { SandboxCopies } from '../../src/plugin-api/index.ts'
import { type Connection, createControl } from './control.ts'
import { createLabel } from './label.ts'
import { findE2bSnapshot } from './snapshots.ts'

/** Keeps in a backup which sandboxes and snapshots these are at E2B. Their files stay with E2B. */
export function e2bCopies(dataDirectory: string, connection: Connection): SandboxCopies {
  const label = createLabel(dataDirectory)
  const control = createControl(connection, () => label.get(), new AbortController().signal)
  return {
    async snapshot(id) {
      if (!label.exists()) return { files: [], note: 'there is no sandbox of it on E2B' }
      if (!connection.E2B_API_KEY) {
        return {
          files: [],
          note: 'its files stay with E2B; which sandbox it is there is not known without E2B_API_KEY',
        }
      }
      const note = await control.find(id).then(
        found =>
          found === undefined ? 'there is no sandbox of it on E2B' : `its files stay with E2B, in the sandbox ${found}`,
        error => `its files stay with E2B, which does not say where: ${messageOf(error)}`,
      )
      return { files: [], note }
    },
    async copySnapshot(id) {
      const name = await findE2bSnapshot(dataDirectory, id).catch(() => undefined)
      const where = name === undefined ? 'there is no snapshot of it on E2B' : `its files stay with E2B, in ${name}`
      return { files: [], note: where }
    },
  }
}
