import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Documents, put } from './documents.ts'
import { type Architecture, type Release, root } from './release.ts'
import { run } from './run.ts'

export interface NpmOptions {
  release: Release
  documents: Pick<Documents, 'license' | 'notices'>
  architectures: readonly Architecture[]
  /** The directory of the packages. */
  output: string
}

const platformName = ({ name }: Architecture) => `@threadbox/linux-${name}`

/** Packs a directory with this manifest. Returns the package's path. */
async function packNpm(directory: string, manifest: object, output: string): Promise<string> {
  put(join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  const printed = await run(['npm', 'pack', '--silent', '--ignore-scripts', '--pack-destination', output], {
    cwd: directory,
  })
  return join(output, printed.trim())
}

/** Compiles and packs packages/ai-sdk at the version of this release. Returns the package's path. */
export async function makeAiSdkPackage({
  release,
  documents,
  output,
}: Omit<NpmOptions, 'architectures'>): Promise<string> {
  const source = join(root, 'packages/ai-sdk')
  const work = mkdtempSync(join(output, '.npm-'))
  try {
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    await run([process.execPath, compiler, '-p', source, '--outDir', join(work, 'dist')])
    copyFileSync(join(source, 'README.md'), join(work, 'README.md'))
    put(join(work, 'LICENSE'), documents.license)
    const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'))
    return await packNpm(work, { ...manifest, version: release.version }, output)
  } finally {
    rmSync(work, { recursive: true })
  }
}

/** Packs threadbox for npm: one package that starts the executable, and one for each platform that has it. Returns their paths. */
export async function makeNpmPackages({ release, documents, architectures, output }: NpmOptions): Promise<string[]> {
  const work = mkdtempSync(join(output, '.npm-'))
  const { version, description, license } = release
  const common = { version, description, license, os: ['linux'] }
  const pack = (directory: string, manifest: object) => {
    put(join(directory, 'LICENSE'), documents.license)
    return packNpm(directory, manifest, output)
  }
  try {
    const paths: string[] = []
    for (const architecture of architectures) {
      const directory = join(work, architecture.name)
      mkdirSync(join(directory, 'bin'), { recursive: true })
      copyFileSync(architecture.executable, join(directory, 'bin/threadbox'))
      put(join(directory, 'NOTICES.txt'), documents.notices)
      put(
        join(directory, 'README.md'),
        `The executable of threadbox for Linux on ${architecture.name}: install \`threadbox\`.\n`,
      )
      const manifest = { ...common, cpu: [architecture.name], libc: ['glibc'], files: ['bin', 'NOTICES.txt'] }
      paths.push(await pack(directory, { name: platformName(architecture), ...manifest, preferUnplugged: true }))
    }
    const directory = join(work, 'threadbox')
    put(join(directory, 'bin/threadbox.js'), await Bun.file(join(root, 'packages/npm/threadbox.js')).text(), 0o755)
    put(join(directory, 'README.md'), await Bun.file(join(root, 'packages/npm/README.md')).text())
    const optionalDependencies = Object.fromEntries(architectures.map(each => [platformName(each), version]))
    const manifest = {
      ...common,
      bin: { threadbox: 'bin/threadbox.js' },
      engines: { node: '>=18' },
      optionalDependencies,
    }
    paths.push(await pack(directory, { name: 'threadbox', ...manifest, files: ['bin'] }))
    return paths
  } finally {
    rmSync(work, { recursive: true })
  }
}
