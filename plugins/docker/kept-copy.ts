import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isSafeId } from '../../src/guest/host/guest-backend.ts'
import { isObject, objectOf, parseJson } from '../../src/read/json.ts'
import { type CreatedWith, parseCreatedWith } from './labels.ts'

/** The parts of a container's copy besides its image and volumes. */
export interface KeptCopy {
  createdWith: CreatedWith
  /** The variables of its image. */
  env: Record<string, string>
  volumes: string[]
}

export const toVolumeFile = (index: number) => `volume-${index}.tar`

/** The files of a copy in its directory, in the order of a backup. */
export const copyFiles = (volumes: number): string[] => [
  'container.json',
  'image.tar',
  ...Array.from({ length: volumes }, (_, index) => toVolumeFile(index)),
]

/** Where a restore puts copies of containers. */
export const copiesDirectory = (dataDirectory: string) => join(dataDirectory, 'docker')
export const directoryOf = (dataDirectory: string, id: string) => join(copiesDirectory(dataDirectory), id)

/** Ids of sandboxes that a restore has brought, and no container was made of yet. */
export const listCopies = (dataDirectory: string): string[] =>
  existsSync(copiesDirectory(dataDirectory)) ? readdirSync(copiesDirectory(dataDirectory)).filter(isSafeId) : []

export const hasCopy = (dataDirectory: string, id: string): boolean =>
  isSafeId(id) && existsSync(directoryOf(dataDirectory, id))

/** Throws when the copy is damaged. */
export async function readCopy(directory: string): Promise<KeptCopy> {
  const path = join(directory, 'container.json')
  const { createdWith: made, env, volumes } = objectOf(parseJson(await readFile(path, 'utf8'))) ?? {}
  const createdWith = parseCreatedWith(JSON.stringify(made))
  if (!createdWith || !isObject(env) || !Array.isArray(volumes)) throw new Error(`${path} is damaged`)
  return {
    createdWith,
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])),
    volumes: volumes.map(String),
  }
}
