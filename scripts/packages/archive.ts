import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Documents, gzip, put, setTimes } from './documents.ts'
import type { Architecture, Release } from './release.ts'
import { run } from './run.ts'

export interface ArchiveOptions {
  release: Release
  architecture: Architecture
  documents: Omit<Documents, 'unit'>
  /** The directory of the archive. */
  output: string
}

/** Packs the executable with what belongs beside it, for install.sh. */
export async function makeArchive({ release, architecture, documents, output }: ArchiveOptions): Promise<void> {
  const name = `threadbox-linux-${architecture.name}`
  const work = mkdtempSync(join(output, '.archive-'))
  const at = (path: string) => join(work, name, path)
  const { completions, manualPage, notices, license, changelog } = documents
  mkdirSync(at(''))
  copyFileSync(architecture.executable, at('threadbox'))
  put(at('share/man/man1/threadbox.1.gz'), gzip(manualPage))
  put(at('share/bash-completion/completions/threadbox'), completions.bash)
  put(at('share/zsh/site-functions/_threadbox'), completions.zsh)
  put(at('share/fish/vendor_completions.d/threadbox.fish'), completions.fish)
  put(at('LICENSE'), license)
  put(at('NOTICES.txt'), notices)
  put(at('CHANGELOG.md'), changelog)
  setTimes(work, release)
  await pack(`${output}/${name}.tar.gz`, work, [name], release)
  rmSync(work, { recursive: true })
}

/** Packs files of a directory so that the same files give the same archive. */
export async function pack(file: string, directory: string, paths: string[], { epoch }: Release): Promise<void> {
  const tar = ['tar', '-C', directory, '--sort=name', `--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner']
  await run([...tar, '--mode=u=rwX,go=rX', '--use-compress-program=gzip -6n', '-cf', file, ...paths])
}

/** Writes SHA256SUMS of all files of a directory. Returns its text. */
export function writeSums(directory: string): string {
  const names = readdirSync(directory).filter(name => name !== 'SHA256SUMS')
  const lines = names
    .sort()
    .map(
      name => `${new Bun.CryptoHasher('sha256').update(readFileSync(join(directory, name))).digest('hex')}  ${name}\n`,
    )
  put(join(directory, 'SHA256SUMS'), lines.join(''))
  return lines.join('')
}
