import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { nsjail } from '../../plugins/nsjail/index.ts'
import type { Backend, Isolation, Plugin } from '../../src/plugin-api/index.ts'
import { guestExecutable } from '../../src/start/executable.ts'

/** A backend of jails under another name, which says that it isolates so. `change` replaces what it does. */
export function classedBackend(
  name: string,
  isolation: Isolation,
  change: (jails: Backend) => Partial<Backend> = () => ({}),
): Plugin {
  return {
    name,
    backend(context) {
      const dataDirectory = join(context.dataDirectory, name)
      mkdirSync(dataDirectory, { recursive: true })
      chmodSync(dataDirectory, 0o711)
      const nsjailPath = join(import.meta.dir, '../../.cache/nsjail/bin/nsjail')
      const { backend } = nsjail({ executable: guestExecutable, nsjailPath })
      if (!backend) throw new Error('there are no jails')
      const jails = backend({ ...context, dataDirectory })
      return { ...jails, name, isolation, ...change(jails) }
    },
  }
}
