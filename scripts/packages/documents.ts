import { chmodSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Release, root } from './release.ts'
import { run } from './run.ts'

/** The documents that come with the executable: from its own commands, or from this repository. */
export interface Documents {
  manualPage: string
  completions: Readonly<Record<'bash' | 'zsh' | 'fish', string>>
  notices: string
  license: string
  changelog: string
  /** The unit of the service, for an executable in /usr/bin. */
  unit: string
}

/** Asks an executable that this machine can run. */
export async function readDocuments(executable: string, { epoch }: Release): Promise<Documents> {
  const ask = (...words: string[]) => run([executable, ...words], { env: { SOURCE_DATE_EPOCH: `${epoch}` } })
  const [manualPage, bash, zsh, fish, notices, unit] = await Promise.all([
    ask('man'),
    ask('completions', 'bash'),
    ask('completions', 'zsh'),
    ask('completions', 'fish'),
    ask('licenses'),
    ask('service', 'install', '--print'),
  ])
  const read = (name: string) => readFileSync(join(root, name), 'utf8')
  const ours = unit.replace('\nExecStart=/usr/local/bin/threadbox ', '\nExecStart=/usr/bin/threadbox ')
  if (ours === unit) throw new Error('the unit does not start /usr/local/bin/threadbox')
  return {
    ...{ manualPage, completions: { bash, zsh, fish }, notices },
    ...{ license: read('LICENSE'), changelog: read('CHANGELOG.md') },
    unit: ours.replace(/^# Written by .*\n/, '# Of the package threadbox. Own settings: systemctl edit threadbox\n'),
  }
}

/** Writes a file with its directories. */
export function put(path: string, content: string | Uint8Array, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
  writeFileSync(path, content)
  chmodSync(path, mode)
}

/** Gives a directory and all in it one time. */
export function setTimes(directory: string, release: Release): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) setTimes(path, release)
    else utimesSync(path, release.epoch, release.epoch)
  }
  utimesSync(directory, release.epoch, release.epoch)
}

/** Compresses as `gzip -9n` does, without a name and a time. */
export const gzip = (text: string): Uint8Array => Bun.gzipSync(new TextEncoder().encode(text), { level: 9 })
