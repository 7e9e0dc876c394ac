import type { Plugin, PluginContext } from '../../src/plugin-api/index.ts'
import { createNsjailBackend, type NsjailOptions } from './backend.ts'
import { checkImages } from './backup/check-images.ts'
import { nsjailCopies } from './backup/copies.ts'
import { listBaseTrees, packBase, unpackTrees } from './backup/trees.ts'
import { openBases } from './files/base-store.ts'

export {
  checkImages,
  createNsjailBackend,
  listBaseTrees,
  type NsjailOptions,
  nsjailCopies,
  openBases,
  packBase,
  unpackTrees,
}

/** The backend `nsjail`: sandboxes on this machine, in jails of Linux namespaces. */
export function nsjail(options: Omit<NsjailOptions, keyof PluginContext> = {}): Plugin {
  return { name: 'nsjail', backend: context => createNsjailBackend({ ...options, ...context }) }
}
