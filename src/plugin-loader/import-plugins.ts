import { messageOf } from '../errors.ts'
import type { Plugin } from '../plugin-api/index.ts'
import type { EngineContract } from '../plugin-suite/scene.ts'
import { isObject, objectOf } from '../read/json.ts'
import { provideModule } from './module.ts'

export interface PluginFile {
  file: string
  plugins: Plugin[]
  /** What the file exports to have its engines tested. */
  contract?: EngineContract
}

/** Imports a TypeScript or JavaScript file with its relative imports. Throws an error that says what is wrong with the file. */
export async function importPlugins(file: string, guestExecutable: string): Promise<PluginFile> {
  if (!(await Bun.file(file).exists())) throw new Error('there is no such file')
  provideModule(guestExecutable)
  const module: unknown = await import(file).catch(error => {
    throw new Error(describeFailure(error))
  })
  const { default: given, contract } = objectOf({ ...(module as object) }) ?? {}
  if (given === undefined)
    throw new Error('has no default export: it must be { name, backend?, engine? }, or a list of these')
  const plugins: unknown[] = Array.isArray(given) ? given : [given]
  if (plugins.length === 0) throw new Error('its default export is an empty list')
  const isContract = isObject(contract) && typeof contract.stage === 'function'
  if (contract !== undefined && !isContract) throw new Error('its export `contract` has no function `stage`')
  return {
    file,
    plugins: plugins.map(toPlugin),
    ...(isContract && { contract: contract as unknown as EngineContract }),
  }
}

function toPlugin(value: unknown): Plugin {
  if (!isObject(value)) throw new Error('its default export is not a plugin: it is not an object')
  const { name, backend, engine } = value
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9-]*$/.test(name)) {
    throw new Error('its plugin has no name of lower-case letters, digits and hyphens')
  }
  for (const [field, factory] of Object.entries({ backend, engine })) {
    if (factory !== undefined && typeof factory !== 'function') throw new Error(`${field} of ${name} is not a function`)
  }
  if (!backend && !engine) throw new Error(`${name} has neither a backend nor an engine`)
  return value as unknown as Plugin
}

/** All errors of a file that cannot be parsed, each with its line and column. */
function describeFailure(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describeFailure).join('; ')
  const { position } = (objectOf(error) ?? {}) as { position?: { file?: string; line: number; column: number } }
  const place = position ? ` (${position.file ?? ''}:${position.line}:${position.column})` : ''
  return `cannot be imported: ${messageOf(error)}${place}`
}
