import type { Config } from '../core/config.ts'
import type { Backend, Engine, Plugin, PluginContext } from '../plugin-api/index.ts'
import type { PluginFile } from '../plugin-loader/import-plugins.ts'
import { guestExecutable } from './executable.ts'
import { createLog } from './log.ts'
import { listPlugins } from './plugins.ts'

export interface Plugins {
  backends: ReadonlyMap<string, Backend>
  engines: ReadonlyMap<string, Engine>
  /** The file of each backend that comes from `--plugin`, by the backend's name. */
  files: ReadonlyMap<string, string>
  external: readonly PluginFile[]
}

/**
 * Makes the backends and engines of this build, or of `builtIn`, and those of the configuration's files. Throws a
 * ConfigError that says what is wrong with which file.
 */
export async function loadPlugins(
  config: Config,
  context: PluginContext = closedContext(config.dataDirectory),
  builtIn?: readonly Plugin[],
): Promise<Plugins> {
  const backends = new Map<string, Backend>()
  const engines = new Map<string, Engine>()
  const files = new Map<string, string>()
  const plugins = builtIn ?? (await listPlugins(config))
  for (const { name, backend, engine } of plugins) {
    if (backend) backends.set(name, backend(context))
    if (engine) engines.set(name, engine(context))
  }
  if (config.plugins.length === 0) return { backends, engines, files, external: [] }
  const { loadExternal } = await import('../plugin-loader/load.ts')
  const taken = plugins.map(({ name }) => name)
  const loaded = await loadExternal(config.plugins, { taken, context, guestExecutable })
  for (const { backend, file } of loaded.backends) {
    backends.set(backend.name, backend)
    files.set(backend.name, file)
  }
  for (const engine of loaded.engines) engines.set(engine.name, engine)
  return { backends, engines, files, external: loaded.files }
}

/** For commands whose sandboxes must not reach any network. */
export const closedContext = (dataDirectory: string): PluginContext => ({
  dataDirectory,
  serveProxy: (_, socket) => void socket.destroy(),
  log: createLog('info'),
})
