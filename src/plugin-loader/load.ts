import { ConfigError } from '../core/config.ts'
import { messageOf } from '../errors.ts'
import type { Backend, Engine, Plugin, PluginContext } from '../plugin-api/index.ts'
import { checkedBackend } from './checked-backend.ts'
import { importPlugins, type PluginFile } from './import-plugins.ts'
import { findShapeProblems } from './shape.ts'
import { watchOver } from './watchdog.ts'

/** How long the import of a file may take, and each factory in it. */
const LOADED_WITHIN_MS = 10_000

export interface LoadOptions {
  /** Names that no plugin may have. */
  taken: readonly string[]
  context: PluginContext
  /** The executable that a plugin's environments get as their guest. */
  guestExecutable: string
}

export interface ExternalPlugins {
  backends: { backend: Backend; file: string }[]
  engines: Engine[]
  files: PluginFile[]
}

/**
 * Imports the plugins of these files into this process, with all its rights. Throws a ConfigError that says for every file
 * what is wrong with it.
 */
export async function loadExternal(
  files: readonly string[],
  { taken, context, guestExecutable }: LoadOptions,
): Promise<ExternalPlugins> {
  const problems: string[] = []
  const watchdog = watchOver(LOADED_WITHIN_MS, problems)
  const names = new Map(taken.map(name => [name, 'this executable']))
  let current = ''
  const onExit = () => {
    console.error(`threadbox: ${[...problems, `--plugin ${current}: ends the process`].join('\n')}`)
    process.exitCode = 2
  }
  process.on('exit', onExit)
  const loaded: ExternalPlugins = { backends: [], engines: [], files: [] }
  try {
    for (const file of new Set(files)) {
      current = file
      try {
        const found = await watchdog.within(file, () => importPlugins(file, guestExecutable))
        loaded.files.push(found)
        for (const plugin of found.plugins) {
          const owner = names.get(plugin.name)
          if (owner) throw new Error(`the name ${plugin.name} is taken by ${owner}`)
          names.set(plugin.name, file)
          build(plugin, file, loaded, context, watchdog.during)
        }
      } catch (error) {
        problems.push(`--plugin ${file}: ${messageOf(error)}`)
      }
    }
  } finally {
    process.off('exit', onExit)
    watchdog.close()
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return loaded
}

function build(
  { name, backend, engine }: Plugin,
  file: string,
  { backends, engines }: ExternalPlugins,
  context: PluginContext,
  during: <Value>(file: string, make: () => Value) => Value,
): void {
  const make = <Value extends { name: string }>(kind: 'backend' | 'engine', factory: (its: PluginContext) => Value) => {
    const made = during(file, () => {
      try {
        return factory(context)
      } catch (error) {
        throw new Error(`${kind}() of ${name} throws: ${messageOf(error)}`)
      }
    })
    const missing = findShapeProblems(kind, made)
    if (missing) throw new Error(`${kind}() of ${name} does not give a valid ${kind}: ${missing}`)
    if (made.name !== name) throw new Error(`${kind}() of ${name} gives the name ${made.name}`)
    return made
  }
  if (backend) backends.push({ backend: checkedBackend(make('backend', backend)), file })
  if (engine) engines.push(make('engine', engine))
}
