import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv from 'ajv'
import { readRelease, root } from '../../scripts/packages/release.ts'
import { makeSbom } from '../../scripts/packages/sbom.ts'
import { executable } from '../support/server.ts'

const schema = (name: string) =>
  JSON.parse(readFileSync(join(root, 'node_modules/@cyclonedx/cyclonedx-library/res/schema', name), 'utf8'))

test('the SBOM is CycloneDX 1.6 and names all that the notices name', async () => {
  const text = makeSbom(await readRelease(), { name: 'x64', debian: 'amd64', executable })
  const document = JSON.parse(text)
  const ajv = new Ajv({ strict: false, validateFormats: false })
  for (const name of ['spdx.SNAPSHOT.schema.json', 'jsf-0.82.SNAPSHOT.schema.json']) {
    ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}`)
  }
  ajv.validate(schema('bom-1.6.SNAPSHOT.schema.json'), document)
  expect(ajv.errors).toBeNull()

  const notices = readFileSync(join(root, 'src/cli/notices.txt'), 'utf8')
  const named = [...notices.matchAll(/^ {2}(\S+) (\d\S*) \(/gm)].map(([, name, version]) => `${name} ${version}`)
  const components: { group?: string; name: string; version: string; hashes?: unknown[] }[] = document.components
  const written = components.map(({ group, name, version }) => `${group ? `${group}/` : ''}${name} ${version}`)
  expect(written.toSorted()).toEqual(
    [...named, `bun ${Bun.version}`, 'nsjail 3.6', 'libprotobuf 3.14.0', 'libnl 3.11.0'].toSorted(),
  )
  expect(named.length).toBeGreaterThan(100)
  expect(components.filter(({ hashes }) => hashes === undefined).length).toBeLessThan(4)
})

test('the first entry of the changelog is of the version in package.json', async () => {
  expect((await readRelease()).version).toBe(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version)
})
