import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Node, parse } from 'acorn'
import { full } from 'acorn-walk'
import { check } from 'recheck'

/**
 * No regular expression may look at a part of its text again and again: a caller, a program in a sandbox, a page or a model
 * would hold the whole server up with it. `(a+)+`, and also `a*b*$`, which is quadratic, and ` +$`, which begins anew at each
 * space. Cut such a text by hand, or say here why nobody else can write it, or why it is short.
 */

const root = join(import.meta.dir, '..')
const files = [...new Bun.Glob('{src,plugins,packages}/**/*.{ts,tsx}').scanSync(root)]
  .filter(file => !file.includes('node_modules') && !file.endsWith('.d.ts'))
  .sort()

interface Expression {
  file: string
  source: string
  flags: string
}

/** Of literals, and of texts that are patterns of a schema. */
const expressions: Expression[] = []
/** Expressions that are made when the program runs. */
const made: string[] = []

for (const file of files) {
  const text = readFileSync(join(root, file), 'utf8').replaceAll("with { type: 'macro' }", '')
  const script = new Bun.Transpiler({ loader: file.endsWith('x') ? 'tsx' : 'ts', target: 'bun' }).transformSync(text)
  full(parse(script, { ecmaVersion: 'latest', sourceType: 'module' }), found => {
    const node = found as Node & Record<string, any>
    if (node.type === 'Literal' && node.regex)
      expressions.push({ file, source: node.regex.pattern, flags: node.regex.flags })
    if (node.type === 'NewExpression' && node.callee.name === 'RegExp') made.push(file)
    if (node.type === 'Property' && node.key.name === 'pattern' && typeof node.value.value === 'string') {
      expressions.push({ file, source: node.value.value, flags: 'u' })
    }
  })
}

/** Files whose expressions read nothing that somebody else has written, or nothing long. */
const harmless: Readonly<Record<string, string>> = {
  'plugins/nsjail/checks/remedies.ts': 'what nsjail says when it is tried at the start, 4096 characters of it',
  'src/backup/place-directory.ts': 'names of files, 255 bytes at most',
  'src/cli/service/environment-file.ts': 'a file of the operator',
  'src/plugin-loader/types-text.ts': 'our own types, when the executable is built',
}
/** Without one, an expression takes only so long. */
const hasRepeat = (source: string) => /[*+]|,\}/.test(source)

test('no regular expression takes more than linear time', async () => {
  expect(expressions.length).toBeGreaterThan(100)
  const read = expressions.filter(({ file, source }) => !(file in harmless) && hasRepeat(source))
  const slow: string[] = []
  for (const { file, source, flags } of read) {
    if ((await check(source, flags, { timeout: 60_000 })).status !== 'safe') slow.push(`${file}: ${source}`)
  }
  expect(slow).toEqual([])
}, 300_000)

test('no regular expression is made of a text that is not its author’s', () => {
  expect(made).toEqual([
    // Of routes.
    'src/http/elysia.ts',
    // With a constant.
    'src/http/preview/address.ts',
    // Of its own words.
    'src/plugin-suite/grammar.ts',
  ])
})
