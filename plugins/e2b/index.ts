import type { Plugin } from '../../src/plugin-api/index.ts'
import { createE2bBackend, type E2bOptions } from './backend.ts'
import { e2bCopies } from './copies.ts'

export { createE2bBackend, type E2bOptions, e2bCopies }

/** The backend `e2b`: sandboxes in E2B's cloud, or in one of your own. */
export function e2b(options: Omit<E2bOptions, 'dataDirectory' | 'log'>): Plugin {
  return { name: 'e2b', backend: context => createE2bBackend({ ...options, ...context }) }
}
