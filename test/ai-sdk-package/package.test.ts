import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { makeAiSdkPackage } from '../../scripts/packages/npm.ts'
import { readRelease } from '../../scripts/packages/release.ts'
import { run } from '../../scripts/packages/run.ts'
import { patiently, temporaryDirectory } from '../support/server.ts'

patiently()

let directory = ''
let packed = ''
beforeAll(async () => {
  directory = temporaryDirectory()
  const documents = { license: 'MIT', notices: '' }
  packed = await makeAiSdkPackage({ release: await readRelease(), documents, output: directory })
  await run(['tar', '-xzf', packed, '-C', directory])
})
afterAll(() => rmSync(directory, { recursive: true }))

const read = (path: string) => readFileSync(join(directory, 'package', path), 'utf8')

test('it is compiled, with types, at the version of the release', async () => {
  const { version } = await readRelease()
  expect(basename(packed)).toBe(`threadbox-ai-sdk-${version}.tgz`)
  const manifest = JSON.parse(read('package.json'))
  expect(manifest).toMatchObject({ name: '@threadbox/ai-sdk', version, type: 'module', engines: { node: '>=22' } })
  const entries = Object.values<{ types?: string; default?: string }>(manifest.exports)
  for (const { types, default: code } of entries) for (const path of [types, code]) if (path) read(path)
  const files = (await run(['tar', '-tzf', packed])).trim().split('\n')
  expect(
    files.filter(file => !/^package\/(dist\/.*\.(js|d\.ts)|LICENSE|README\.md|package\.json)$/.test(file)),
  ).toEqual([])
})

test('it imports nothing but the two packages of the AI SDK, and the chat not even the harness', () => {
  const files = [...new Bun.Glob('dist/**/*.{js,d.ts}').scanSync(join(directory, 'package'))]
  const importsOf = (file: string) =>
    [...read(file).matchAll(/\b(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(([, name = '']) => name)
  const foreign = (some: string[]) => [...new Set(some.flatMap(importsOf))].filter(name => !name.startsWith('.')).sort()
  const code = files.filter(file => file.endsWith('.js'))
  expect(foreign(code)).toEqual(['@ai-sdk/harness', '@ai-sdk/provider-utils'])
  expect(Object.keys(JSON.parse(read('package.json')).dependencies)).toEqual(foreign(code))
  // Types of `ai` alone, for those who have it.
  expect(foreign(files)).toEqual(['@ai-sdk/harness', '@ai-sdk/provider-utils', 'ai'])
  expect(foreign(code.filter(file => !file.startsWith('dist/sandbox/') && file !== 'dist/index.js'))).toEqual([
    '@ai-sdk/provider-utils',
  ])
  expect(importsOf('dist/chat/transport.js').filter(name => name.includes('sandbox'))).toEqual([])
})
