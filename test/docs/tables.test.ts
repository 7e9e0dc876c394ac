import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { commands } from '../../src/cli/commands.ts'
import { errorCodes, statusOf } from '../../src/errors.ts'
import { settings } from '../../src/start/settings.ts'
import { readPage, root } from './page.ts'

/** The words in backticks of the cells of a page's tables, row by row. */
const rowsOf = (file: string): string[][] =>
  readPage(file)
    .text.split('\n')
    .filter(line => line.startsWith('|'))
    .map(line => [...line.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word))

test('every setting is in the table of configuration, with its default', () => {
  const rows = rowsOf('docs/configuration.md')
  const missing = settings.filter(({ name }) => !rows.some(row => row.includes(name)))
  expect(missing.map(({ name }) => name)).toEqual([])
  const { text } = readPage('docs/configuration.md')
  const wrong = settings.filter(({ name, default: value }) => {
    const row = text.split('\n').find(line => line.startsWith('|') && line.split('|')[1]?.includes(`\`${name}\``))
    return value !== undefined && name !== 'data-dir' && !row?.split('|')[2]?.includes(value)
  })
  expect(wrong.map(({ name }) => name)).toEqual([])
})

test('every command is in the table of the command line', () => {
  const written = rowsOf('docs/cli.md').flat()
  const shown = commands.filter(({ isInternal }) => !isInternal).map(({ name }) => `threadbox ${name}`)
  const isWritten = (name: string) => written.some(code => code === name || code.startsWith(`${name} `))
  expect(shown.filter(name => !isWritten(name))).toEqual([])
  expect(shown.length).toBeGreaterThan(20)
})

test('every flag of run and exec is in the table of CI', () => {
  const written = rowsOf('docs/ci.md').flatMap(row => row.join(' ').match(/--[a-z-]+/g) ?? [])
  const flags = commands.filter(({ name }) => name === 'run' || name === 'exec').flatMap(({ flags = [] }) => flags)
  expect(flags.map(({ name }) => `--${name}`).filter(flag => !written.includes(flag))).toEqual([])
})

test('every error code is in the table of the API, with its status', () => {
  const { text } = readPage('docs/api.md')
  const missing = errorCodes.filter(code => {
    const row = text.split('\n').find(line => line.startsWith('|') && line.includes(`\`${code}\``))
    return row?.split('|')[1]?.trim() !== `${statusOf(code)}`
  })
  expect(missing).toEqual([])
  expect(errorCodes.length).toBeGreaterThan(20)
})

test('every room is on the page of the architecture', () => {
  const rooms = readdirSync(join(root, 'src'), { withFileTypes: true }).filter(entry => entry.isDirectory())
  const written = rowsOf('docs/architecture.md').flat()
  expect(rooms.map(({ name }) => `src/${name}/`).filter(room => !written.includes(room))).toEqual([])
  expect(rooms.length).toBeGreaterThan(10)
})

/** Variables that the server or a command sets for a program that it starts itself, and that nobody else reads. */
const internal = [
  'CODEX_API_KEY',
  'THREADBOX_CALL',
  'THREADBOX_COMMAND',
  'THREADBOX_ENVIRONMENT',
  'THREADBOX_GIT_USER',
  'THREADBOX_LOG',
  'THREADBOX_PROCESSES',
  'THREADBOX_TOKEN',
]

test('every variable that the code names is in the tables of configuration', () => {
  const files = [...new Bun.Glob('{src,plugins}/**/*.ts').scanSync(root)].filter(file => !file.includes('node_modules'))
  const source = files.map(file => readFileSync(join(root, file), 'utf8')).join('\n')
  const named = new Set(source.match(/\b(THREADBOX|XDG|DOCKER|E2B)_[A-Z][A-Z0-9_]*\b|\b[A-Z]+_(API_KEY|BASE_URL)\b/g))
  const ofSettings = settings.map(({ name }) => `THREADBOX_${name.toUpperCase().replaceAll('-', '_')}`)
  const { text } = readPage('docs/configuration.md')
  const known = ['THREADBOX_NAME', ...internal, ...ofSettings]
  expect([...named].filter(name => !known.includes(name) && !text.includes(`\`${name}\``)).sort()).toEqual([])
})
