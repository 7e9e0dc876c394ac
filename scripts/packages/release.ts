import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './run.ts'

export const root = join(import.meta.dir, '../..')

/** The release that is packed. Only package.json has its version. */
export interface Release {
  version: string
  description: string
  license: string
  /** The time of the packed commit in seconds since 1970, so that each packing of it has the same dates. */
  epoch: number
}

export interface Architecture {
  /** The platform's name in the names of files and of npm packages. */
  name: 'x64' | 'arm64'
  debian: string
  executable: string
}

export const architectures: readonly Architecture[] = [
  { name: 'x64', debian: 'amd64', executable: join(root, 'dist/threadbox') },
  { name: 'arm64', debian: 'arm64', executable: join(root, 'dist/threadbox-arm64') },
]

/** Throws when the changelog's first entry is of another version. */
export async function readRelease(): Promise<Release> {
  const { version, description, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const [, heading = ''] = /^## (.*)$/m.exec(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')) ?? []
  if (heading.split(' ')[0] !== version) {
    throw new Error(`CHANGELOG.md begins with "${heading}", package.json has ${version}`)
  }
  const set = process.env.SOURCE_DATE_EPOCH
  const epoch = set ? Number(set) : Number((await run(['git', '-C', root, 'log', '-1', '--format=%ct'])).trim())
  return { version, description, license, epoch }
}
