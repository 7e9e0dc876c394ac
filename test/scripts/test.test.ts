import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { processesNamed } from '../support/leftovers.ts'
import { patiently } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

/** A repository that has scripts/test and nothing to set up, build or check. */
const root = mkdtempSync(join(tmpdir(), 'threadbox-tests-'))
const write = (path: string, text: string) => {
  writeFileSync(join(root, path), text)
  chmodSync(join(root, path), 0o755)
}
beforeAll(() => {
  for (const path of ['scripts', '.cache/bin', 'test']) mkdirSync(join(root, path), { recursive: true })
  cpSync(join(import.meta.dir, '../../scripts/test'), join(root, 'scripts/test'))
  for (const name of ['setup', 'build', 'agent-programs', 'api-types', 'gvisor', 'e2b-python'])
    write(`scripts/${name}`, '#!/bin/sh\n')
  write('.cache/bin/bun', `#!/bin/sh\n[ "$1" != test ] || exec '${process.execPath}' "$@"\n`)
})
afterEach(() => rmSync(join(root, 'test'), { recursive: true }))
afterAll(() => rmSync(root, { recursive: true }))

function begin(files: Record<string, string>) {
  mkdirSync(join(root, 'test'), { recursive: true })
  for (const [name, lines] of Object.entries(files)) {
    writeFileSync(join(root, `test/${name}.test.ts`), `import { afterAll, expect, test } from 'bun:test'\n${lines}\n`)
  }
  const { CI, ...env } = process.env
  return Bun.spawn([join(root, 'scripts/test')], { env, stdio: ['ignore', 'pipe', 'pipe'] })
}

const fine = "test('is so', () => {})\ntest('is so too', () => {})"
const rows: [string, Record<string, string>, string][] = [
  ['that passes', { fine }, '2 passed, 0 failed'],
  ['that fails', { fine, other: "test('is not so', () => expect(1).toBe(2))" }, '2 passed, 1 failed'],
  [
    'that is skipped',
    { fine, other: "test.skip('is not tried')\ntest.todo('will be')" },
    '2 passed, 0 failed, 2 skipped',
  ],
  ['whose file cannot be loaded', { fine, other: "import './nowhere.ts'" }, '2 passed, 1 failed'],
  ['that is killed', { fine, other: "test('x', () => process.kill(process.pid, 'SIGKILL'))" }, '2 passed, 1 failed'],
  ['that ends the process', { fine, other: "test('x', () => process.exit(0))" }, '2 passed, 1 failed'],
  [
    'whose end fails',
    { fine, other: "afterAll(() => { throw new Error('left behind') })\ntest('x', () => {})" },
    '3 passed, 1 failed',
  ],
]
test.each(rows)('counts a test %s', async (_, files, last) => {
  const child = begin(files)
  const [text, code] = await Promise.all([child.stdout.text(), child.exited])
  expect(text.trimEnd().split('\n').at(-1)).toBe(last)
  expect(code).toBe(last.includes(' 0 failed') ? 0 : 1)
})

/** A test that fails at these of its runs, counted from 0. */
const flaky = (name: string, fails: readonly number[]) =>
  `test(${JSON.stringify(name)}, () => { const seen = import.meta.dir + '/${name.length}'; const fs = require('node:fs')
  const run = fs.existsSync(seen) ? fs.statSync(seen).size : 0; fs.appendFileSync(seen, 'x')
  expect(${JSON.stringify(fails)}).not.toContain(run) })`
const once = (name: string) => flaky(name, [0])
test.each([
  ['runs what failed once more, alone, and names what passes then', once('slow'), '3 passed, 0 failed'],
  ['has a test that guards against an attack pass three times alone', once('held: regression'), '3 passed, 0 failed'],
  ['counts such a test that fails once of those', flaky('held: regression', [0, 2]), '2 passed, 1 failed'],
  [
    'gives many failures no second run',
    [...'abcdefghi'].map((_, n) => once('x'.repeat(n + 1))).join('\n'),
    '2 passed, 9 failed',
  ],
])('%s', async (_, other, last) => {
  const child = begin({ fine, other })
  const text = await child.stdout.text()
  expect(text.trimEnd().split('\n').at(-1)).toBe(last)
  expect(text.includes('UNSTEADY') && text.includes('test/other.test.ts')).toBe(last.includes(' 0 failed'))
})

test('counts none at all as a failure', async () => {
  const child = begin({})
  expect([(await child.stdout.text()).trimEnd().split('\n').at(-1), await child.exited]).toEqual([
    '0 passed, 1 failed',
    1,
  ])
})

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends all of its workers and says what they were at', async signal => {
  const word = `never-${crypto.randomUUID()}`
  const hang = `test('hangs', () => Bun.spawn(['bash', '-c', 'read x; :', '${word}'], { stdin: 'pipe' }).exited)`
  const child = begin({ one: hang, two: hang })
  await until(() => processesNamed(word).length === 2)
  child.kill(signal)
  const [text, code] = await Promise.all([child.stdout.text(), child.exited])
  expect(code).toBe(130)
  expect(text).toContain('Interrupted')
  // Their ends close with the workers.
  await until(() => processesNamed(word).length === 0)
})
