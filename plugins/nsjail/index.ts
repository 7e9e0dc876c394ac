import type { Plugin, PluginContext } from '../../src/plugin-api/index.ts'
import { createNsjailBackend, type NsjailOptions } from './backend.ts'
import { openBases } from './files/base-store.ts'

export { createNsjailBackend, type NsjailOptions, openBases }

/** The backend `nsjail`: sandboxes on this machine, in jails of Linux namespaces. */
export function nsjail(options: Omit<NsjailOptions, keyof PluginContext> = {}): Plugin {
  return { name: 'nsjail', backend: context => createNsjailBackend({ ...options, ...context }) }
}
