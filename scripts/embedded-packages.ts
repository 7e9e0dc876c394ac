import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface Manifest {
  name: string
  version: string
  license?: string
  author?: string | { name: string }
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

const root = join(import.meta.dir, '..')

export const readManifest = (directory: string): Manifest =>
  JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
/** Finds the directory of a package as another directory sees it, by node's rule. */
export function findPackage(name: string, from: string): string | undefined {
  for (let at = from; at !== dirname(at); at = dirname(at)) {
    const candidate = join(at, 'node_modules', name)
    if (existsSync(join(candidate, 'package.json'))) return realpathSync(candidate)
  }
  return undefined
}

/** Follows what `directory` needs at run time; adds the directory of every package on the way to `found`. */
function follow(directory: string, found: Set<string>): void {
  const manifest = readManifest(directory)
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = manifest
  const peers = Object.keys(peerDependencies ?? {}).filter(name => !peerDependenciesMeta?.[name]?.optional)
  for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
    const dependency = findPackage(name, directory)
    if (dependency === undefined && !optionalDependencies?.[name]) {
      throw new Error(`${manifest.name} needs ${name}, which is not installed`)
    }
    if (dependency === undefined || found.has(dependency)) continue
    found.add(dependency)
    follow(dependency, found)
  }
}

/** Lists the directories of all npm packages that the executable embeds, where `bun install` has put them. */
export function listEmbeddedPackages(): string[] {
  const found = new Set<string>()
  follow(root, found)
  return [...found].filter(directory => directory.includes('/node_modules/'))
}
