// See scripts/package.
import { copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { makeArchive, pack, writeSums } from './archive.ts'
import { makeDebianPackage } from './debian.ts'
import { put, readDocuments } from './documents.ts'
import { makeAiSdkPackage, makeNpmPackages } from './npm.ts'
import { architectures, readRelease, root } from './release.ts'
import { makeSbom } from './sbom.ts'

const output = join(root, 'dist/packages')
const release = await readRelease()
// dist/threadbox is for the machine that built it.
const here = architectures.find(({ name }) => name === 'x64')
if (!here || process.arch !== 'x64') throw new Error('packages are made on x64')
rmSync(output, { recursive: true, force: true })
mkdirSync(output, { recursive: true })
const documents = await readDocuments(here.executable, release)

for (const architecture of architectures) {
  const name = `threadbox-linux-${architecture.name}`
  copyFileSync(architecture.executable, join(output, name))
  put(join(output, `${name}.cdx.json`), makeSbom(release, architecture))
  await makeArchive({ release, architecture, documents, output })
  await makeDebianPackage({ release, architecture, documents, output })
}
await makeNpmPackages({ release, documents, architectures, output })
await makeAiSdkPackage({ release, documents, output })
put(join(output, 'NOTICES.txt'), documents.notices)
for (const name of ['install.sh', 'Dockerfile', 'gitlab-ci.yml']) {
  put(join(output, name), readFileSync(join(root, 'packages', name)), name.endsWith('.sh') ? 0o755 : 0o644)
}
// These are all files that an image is built from.
put(join(output, '.dockerignore'), '*\n!threadbox-linux-x64\n!threadbox-linux-arm64\n')
// Another machine's order of the bytecode is another one: with this one in .cache/bytecode-order, a build gives the same executable.
await pack(join(output, 'bytecode-order.tar.gz'), join(root, '.cache'), ['bytecode-order'], release)

const sums = writeSums(output)
console.log(`threadbox ${release.version} in ${output}:`)
process.stdout.write(sums)
