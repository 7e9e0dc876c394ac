import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describeGoal } from '../../src/cli/bench/row.ts'
import { listRows, partNames } from '../../src/cli/bench/rows.ts'
import { commands } from '../../src/cli/commands.ts'
import { errorCodes, statusOf } from '../../src/errors.ts'
import { openRequests } from '../../src/http/steps/caller-limits.ts'
import { limits, nameOfLimit } from '../../src/model/limit.ts'
import { probeAreas, probes } from '../../src/selftest/probes/all.ts'
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

test('every limit on callers is in the table of limits, with its default and what counts', () => {
  const lines = readPage('docs/limits.md')
    .text.split('\n')
    .filter(line => line.startsWith('| `'))
  const written = lines.flatMap(line => {
    const [, names = '', value = ''] = line.split('|')
    return (names.match(/[a-z]+\.[a-z]+/g) ?? []).map(name => `${name} ${value.trim().replaceAll('`', '')}`)
  })
  expect(written.sort()).toEqual(limits.map(each => `${nameOfLimit(each)} ${each.default}`).sort())
  const missing = openRequests.filter(({ counts, path }) => {
    const row = lines.find(line => line.includes(`key.${counts}`)) ?? ''
    const words = [...row.matchAll(/`(?:POST )?…?([^`]*)`/g)].map(([, word = '']) => word)
    return !words.some(
      word =>
        word.startsWith('/') &&
        (path.source.includes(word.replaceAll('/', '\\/')) || path.test(`/v1/sandboxes/a${word}`)),
    )
  })
  expect(missing).toEqual([])
  expect(openRequests.length).toBeGreaterThan(3)
})

test('every command is in the table of the command line', () => {
  const written = rowsOf('docs/cli.md').flat()
  const shown = commands.filter(({ isInternal }) => !isInternal).map(({ name }) => `threadbox ${name}`)
  const isWritten = (name: string) => written.some(code => code === name || code.startsWith(`${name} `))
  expect(shown.filter(name => !isWritten(name))).toEqual([])
  expect(shown.length).toBeGreaterThan(20)
})

test('every area of the selftest is in its table, and each probe that the page names is there', () => {
  const written = rowsOf('docs/selftest.md').flat()
  expect(probeAreas.filter(area => !written.includes(area))).toEqual([])
  const named = written.filter(word => /^[a-z-]+\/[a-z-]+$/.test(word))
  expect(named.filter(id => !probes.some(each => each.id === id))).toEqual([])
  expect(named.length).toBeGreaterThan(5)
})

test('every flag of run and exec is in the table of CI', () => {
  const written = rowsOf('docs/ci.md').flatMap(row => row.join(' ').match(/--[a-z-]+/g) ?? [])
  const flags = commands.filter(({ name }) => name === 'run' || name === 'exec').flatMap(({ flags = [] }) => flags)
  expect(flags.map(({ name }) => `--${name}`).filter(flag => !written.includes(flag))).toEqual([])
})

test('every row of the bench is in the table of benchmarks, with its goal', () => {
  const all = partNames.flatMap(part => listRows(part).map(([key, row]) => ({ part, key, ...row })))
  const expected = all.map(({ part, name, unit, taken, baseline, goal }) => {
    const beside = all.find(({ key }) => key === baseline)?.name ?? ''
    return `| \`${part}\` | ${name} | ${taken} | ${beside} | ${goal ? describeGoal(goal, unit) : ''} |`
  })
  const written = readPage('docs/benchmarks.md').text.split('\n')
  const parts = new Set(partNames.map(part => `| \`${part}\` `))
  expect(written.filter(line => parts.has(line.slice(0, line.indexOf('|', 1))))).toEqual(expected)
  expect(all.filter(({ baseline }) => baseline && !all.some(({ key }) => key === baseline))).toEqual([])
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
  'THREADBOX_SERVER_LISTENS',
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
