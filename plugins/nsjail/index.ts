import type { Plugin } from '../../src/plugin.ts'
import { createNsjailBackend, type NsjailOptions } from './backend.ts'

export { createNsjailBackend, type NsjailOptions } from './backend.ts'

/** The backend `nsjail`: sandboxes on this machine, in jails of Linux namespaces. */
export function nsjail(options: Omit<NsjailOptions, 'dataDirectory' | 'serveProxy' | 'log'> = {}): Plugin {
  return {
    name: 'nsjail',
    backend: ({ dataDirectory, serveProxy, log }) =>
      createNsjailBackend({ ...options, dataDirectory, serveProxy, log }),
  }
}
