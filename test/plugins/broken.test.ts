import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, patiently, temporaryDirectory } from '../support/server.ts'

patiently()

let directory = ''
beforeAll(() => {
  directory = temporaryDirectory()
})
afterAll(() => rmSync(directory, { recursive: true }))

const engine = (name: string) => `{ name: '${name}', run: async function* () { return { status: 'completed' } } }`
const good = (name: string) => `export default { name: '${name}', engine: () => (${engine(name)}) }`

/** What a file says, and what is said of it. */
const rows: [string, string | undefined, RegExp][] = [
  ['missing', undefined, /there is no such file/],
  ['syntax', 'export default {\n  name: = 1 }', /cannot be imported: .*syntax\.ts:2:/],
  ['import', "import './nowhere.ts'", /cannot be imported: .*nowhere/],
  ['throws', "throw new Error('no luck')", /cannot be imported: no luck/],
  ['nothing', 'export const name = 1', /has no default export: it must be \{ name, backend\?, engine\? \}/],
  ['text', "export default 'script'", /not a plugin: it is not an object/],
  ['nameless', 'export default { engine() {} }', /has no name/],
  ['path', "export default { name: '../x', engine() {} }", /has no name of lower-case letters/],
  ['empty', "export default { name: 'empty' }", /empty has neither a backend nor an engine/],
  ['list', 'export default []', /an empty list/],
  ['kind', "export default { name: 'kind', engine: 1 }", /engine of kind is not a function/],
  ['contract', `${good('contracted')}\nexport const contract = 1`, /`contract` has no function `stage`/],
  ['builtin', good('echo'), /the name echo is taken by this executable/],
  ['first', good('twin'), /^$/],
  ['second', good('twin'), /the name twin is taken by .*first\.ts/],
  [
    'factory',
    "export default { name: 'factory', engine() { throw new Error('no key') } }",
    /engine\(\) of factory throws: no key/,
  ],
  ['promise', "export default { name: 'promise', async engine() {} }", /does not give a valid engine: it is a promise/],
  ['hollow', "export default { name: 'hollow', engine: () => ({}) }", /name is not a string, run is not a function/],
  [
    'half',
    "export default { name: 'half', backend: () => ({ name: 'half', isolation: 'faith', check() {}, create() {} }) }",
    /does not give a valid backend: isolation is not one of namespaces, .*, open is not a function, list is not a function, close/,
  ],
  [
    'egress',
    "export default { name: 'egress', backend: () => ({ name: 'egress', isolation: 'microvm', egress: 'owm', check() {}, create() {}, open() {}, list() {}, close() {} }) }",
    /does not give a valid backend: egress is not one of proxy, own$/,
  ],
  ['misnamed', `export default { name: 'misnamed', engine: () => (${engine('other')}) }`, /gives the name other/],
  ['hangs', 'await new Promise(() => {})', /did not load within 10 seconds/],
]

test('a plugin that ends the process is named', async () => {
  const file = join(directory, 'exits.ts')
  writeFileSync(file, 'process.exit(0)')
  const result = await command(['doctor', '--plugin', file, '--data-dir', join(directory, 'exits')])
  expect(result).toEqual({ code: 2, stdout: '', stderr: `threadbox: --plugin ${file}: ends the process\n` })
})

// Each of these waits for ten seconds: together.
test.concurrent('all that is wrong with all plugins is told at once', async () => {
  const files = rows.map(([name]) => join(directory, `${name}.ts`))
  for (const [name, text] of rows) if (text !== undefined) writeFileSync(join(directory, `${name}.ts`), text)
  const flags = files.flatMap(file => ['--plugin', file])
  const result = await command(['serve', '--port', '0', '--data-dir', join(directory, 'data'), ...flags])
  expect([result.code, result.stdout]).toEqual([2, ''])
  const lines = result.stderr
    .replace(/^threadbox: /, '')
    .trimEnd()
    .split('\n')
  const said = (file: string) => lines.filter(line => line.startsWith(`--plugin ${file}: `)).join('\n')
  for (const [index, [, , wanted]] of rows.entries()) expect(said(files[index]!)).toMatch(wanted)
  expect(lines).toHaveLength(rows.length - 1)
})

describe.each([
  ['while it is imported', 'for (;;) {}'],
  ['in its factory', "export default { name: 'loop', engine() { for (;;) {} } }"],
])('a plugin that never lets go %s', (place, text) => {
  test.concurrent('is named, with what else is known by then', async () => {
    const own = join(directory, place.replaceAll(' ', '-'))
    mkdirSync(own)
    writeFileSync(join(own, 'loop.ts'), text)
    const flags = ['--plugin', `${own}/none.ts,${own}/loop.ts`, '--data-dir', join(own, 'data')]
    const result = await command(['doctor', ...flags])
    expect(result).toEqual({
      code: 2,
      stdout: '',
      stderr: [
        `threadbox: --plugin ${own}/none.ts: there is no such file`,
        `--plugin ${own}/loop.ts: did not load within 10 seconds\n`,
      ].join('\n'),
    })
  })
})
