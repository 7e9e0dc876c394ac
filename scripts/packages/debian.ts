import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Documents, gzip, put, setTimes } from './documents.ts'
import { type Architecture, type Release, root } from './release.ts'
import { run } from './run.ts'

const MAINTAINER = 'the authors of threadbox <threadbox@localhost>'

export interface DebianOptions {
  release: Release
  architecture: Architecture
  documents: Documents
  /** The directory of the package. */
  output: string
  /** The options -Z and -z of dpkg-deb. */
  compression?: readonly string[]
}

/** Makes the Debian package. Returns its path. */
export async function makeDebianPackage(options: DebianOptions): Promise<string> {
  const { release, architecture, documents, output, compression = ['-Zzstd', '-z10'] } = options
  const tree = mkdtempSync(join(output, '.debian-'))
  try {
    const at = (path: string) => join(tree, path)
    const executable = at('usr/bin/threadbox')
    mkdirSync(dirname(executable), { recursive: true })
    copyFileSync(architecture.executable, executable)
    put(at('usr/lib/systemd/system/threadbox.service'), documents.unit)
    put(at('usr/share/man/man1/threadbox.1.gz'), gzip(documents.manualPage))
    put(at('usr/share/bash-completion/completions/threadbox'), documents.completions.bash)
    put(at('usr/share/zsh/vendor-completions/_threadbox'), documents.completions.zsh)
    put(at('usr/share/fish/vendor_completions.d/threadbox.fish'), documents.completions.fish)
    put(at('usr/share/doc/threadbox/copyright'), `${documents.license}\n${documents.notices}`)
    put(at('usr/share/doc/threadbox/CHANGELOG.md.gz'), gzip(documents.changelog))
    put(at('usr/share/doc/threadbox/changelog.gz'), gzip(debianChangelog(release)))
    for (const name of ['postinst', 'prerm', 'postrm']) {
      put(at(`DEBIAN/${name}`), readFileSync(join(root, 'packages/debian', name)), 0o755)
    }
    put(at('DEBIAN/control'), await control(release, architecture, tree))
    // dpkg-deb wants these of everybody; mkdtemp makes its own for nobody else.
    await run(['chmod', '-R', 'u=rwX,go=rX', tree])
    setTimes(tree, release)
    const file = join(output, `threadbox_${release.version}_${architecture.debian}.deb`)
    await run(['dpkg-deb', '--root-owner-group', ...compression, '--build', tree, file], {
      env: { SOURCE_DATE_EPOCH: `${release.epoch}` },
    })
    return file
  } finally {
    rmSync(tree, { recursive: true })
  }
}

/** The changelog in Debian's form. It names CHANGELOG.md for the changes. */
const debianChangelog = ({ version, epoch }: Release): string => `threadbox (${version}) stable; urgency=medium

  * See CHANGELOG.md.

 -- ${MAINTAINER}  ${new Date(epoch * 1000).toUTCString().replace('GMT', '+0000')}
`

async function control({ version, description }: Release, { debian }: Architecture, tree: string): Promise<string> {
  const [size = ''] = (await run(['du', '-sk', '--apparent-size', '--exclude=DEBIAN', tree])).split('\t')
  return `Package: threadbox
Version: ${version}
Architecture: ${debian}
Maintainer: ${MAINTAINER}
Installed-Size: ${size}
Depends: adduser, libc6 (>= 2.34), libgcc-s1, libstdc++6, zlib1g
Recommends: ca-certificates, e2fsprogs
Section: net
Priority: optional
Description: ${description[0]?.toLowerCase()}${description.slice(1)}
 Threadbox keeps sandboxes, which are isolated environments with their own
 files and processes, and threads, which are conversations in a sandbox. It
 streams an agent's reply and runs its commands there.
`
}
