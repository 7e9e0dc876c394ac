import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

/** The directions of design.md, "The house": imports go down only. */

const root = join(import.meta.dir, '..')
const files = [...new Bun.Glob('{src,plugins}/**/*.ts').scanSync(root)]
  .filter(file => !file.includes('node_modules') && !file.endsWith('.d.ts'))
  .sort()

interface Import {
  from: string
  /** A file of this repository, or the name of a package. */
  to: string
  isTypeOnly: boolean
}

const imports: Import[] = files.flatMap(file => {
  const source = readFileSync(join(root, file), 'utf8')
  const statements = source.matchAll(/^(?:import|export)\b([^'"`;]*?)\bfrom\s+'([^']+)'/gms)
  const bare = source.matchAll(/(?:^import|\bimport\()\s*'([^']+)'/gm)
  return [
    ...[...statements].map(([, what = '', to = '']) => ({ to, isTypeOnly: isTypeOnly(what) })),
    ...[...bare].map(([, to = '']) => ({ to, isTypeOnly: false })),
  ].map(({ to, isTypeOnly }) => ({ from: file, to: targetOf(file, to), isTypeOnly }))
})

function isTypeOnly(what: string): boolean {
  const names = /\{(.*)\}/s.exec(what)?.[1]?.split(',') ?? []
  return /^\s*type\b/.test(what) || (names.length > 0 && names.every(name => !name.trim() || /^\s*type\b/.test(name)))
}

function targetOf(file: string, to: string): string {
  if (to === 'nsjail-wrapper') return 'plugins/nsjail/index.ts'
  return to.startsWith('.') ? relative(root, resolve(root, dirname(file), to)) : to
}

/** From the top down. Each may import itself and what is below it. */
const floors = [
  ['main', 'cli'],
  ['app', 'contract', 'external'],
  ['http'],
  ['core'],
  ['runs', 'db', 'guest', 'gateway', 'egress'],
  ['stream', 'plugin', 'errors'],
]
/** Known to all floors and knowing no floor but the lowest, or types alone. */
const leaves = [
  ...['arguments', 'closest', 'config', 'json-text', 'settings'],
  ...['runtime', 'json', 'bytes', 'bounds', 'memory', 'lock', 'once', 'package.json'],
  ...['disk-space', 'lasting-files', 'own-id'],
]

/** Rooms with settings of their own, which the configuration reads, and the words of errors. */
const configured = ['plugin', 'gateway', 'egress', 'errors']

const floorOf = (room: string) => floors.findIndex(rooms => rooms.includes(room))
/** `http` of src/http/chat.ts, `errors` of src/errors.ts; undefined outside of src. */
const roomOf = (file: string): string | undefined => (file === 'package.json' ? file : /^src\/([^/.]+)/.exec(file)?.[1])
const describeImport = ({ from, to }: Import) => `${from} -> ${to}`
const local = imports.filter(({ to }) => /\.(ts|json)$/.test(to) && !to.startsWith('node_modules'))

test('every file of src has its place', () => {
  const known = [...floors.flat(), ...leaves]
  expect(files.filter(file => file.startsWith('src/') && !known.includes(roomOf(file) ?? ''))).toEqual([])
  expect(local.length).toBeGreaterThan(100)
})

test('imports go down only', () => {
  const upward = local.filter(each => {
    const [from, to] = [roomOf(each.from), roomOf(each.to)]
    if (from === undefined || to === undefined || from === to || leaves.includes(to)) return false
    if (from === 'runtime') return !each.isTypeOnly
    const isSettings = from === 'config' || from === 'settings'
    return (floorOf(from) > floorOf(to) && !isSettings) || (isSettings && !configured.includes(to))
  })
  expect(upward.map(describeImport)).toEqual([])
})

test('rooms on one floor know each other only where the design says so', () => {
  const sideways = local
    .map(each => [roomOf(each.from), roomOf(each.to)] as const)
    .filter(([from = '', to = '']) => from !== to && floorOf(from) >= 0 && floorOf(from) === floorOf(to))
    .map(([from, to]) => `${from} -> ${to}`)
  const allowed = [
    'main -> cli', // the commands
    'runs -> db', // the chunk log is a table
    'gateway -> db', // each call is a row
    'stream -> plugin', // events become chunks
    'external -> contract', // a plugin brings what the suite needs to test it
  ]
  expect([...new Set(sideways)].filter(each => !allowed.includes(each))).toEqual([])
})

test('no file of the server imports a plugin, except main.ts', () => {
  const naming = local.filter(({ from, to }) => from.startsWith('src/') && to.startsWith('plugins/'))
  expect([...new Set(naming.map(({ from }) => from))]).toEqual(['src/main.ts'])
})

test('plugins import plugin.ts, errors.ts, guest/, the smallest leaves and their own files', () => {
  const outside = local.filter(({ from, to }) => {
    if (!from.startsWith('plugins/')) return false
    const own = from.split('/').slice(0, 2).join('/')
    return (
      !to.startsWith(`${own}/`) &&
      !/^src\/(plugin|errors|json|bytes|lock|once|lasting-files|own-id)\.ts$|^src\/guest\//.test(to)
    )
  })
  expect(outside.map(describeImport)).toEqual([])
})

test('nothing that runs inside a sandbox imports what is the server’s', () => {
  const outside = local.filter(
    ({ from, to }) =>
      from.startsWith('src/guest/') && !/^src\/(guest\/.*|(plugin|errors|bounds|json|lock|lasting-files)\.ts)$/.test(to),
  )
  expect(outside.map(describeImport)).toEqual([])
})

describe('packages', () => {
  const importers = (pattern: RegExp) => [
    ...new Set(imports.filter(({ to }) => pattern.test(to)).map(({ from }) => from)),
  ]

  test('Elysia is in app.ts and http/ only', () => {
    const all = importers(/^(elysia|@elysiajs\/.*)$/)
    expect(all.filter(file => !/^src\/(app\.ts|http\/)/.test(file))).toEqual([])
    expect(all).toContain('src/app.ts')
  })

  test('a database is opened in db/ only', () => {
    const opening = importers(/^bun:sqlite$/).filter(file => /\bnew Database\(|\bDatabase\.open\(/.test(codeOf(file)))
    expect(opening.sort()).toEqual(['src/db/lock.ts', 'src/db/open.ts'])
  })

  test('SQL is in db/ only', () => {
    const withSql = files.filter(file =>
      /\b(select\s[\s\S]{1,200}\sfrom\s|insert\s+into\s|delete\s+from\s|update\s+\w+\s+set\s|pragma\s)|\.query[<(]/i.test(
        codeOf(file),
      ),
    )
    expect(withSql.filter(file => !file.startsWith('src/db/'))).toEqual([])
    expect(withSql.length).toBeGreaterThan(5)
  })

  test('what is imported is a dependency that package.json names, or comes with Bun', () => {
    const names = Object.keys({ ...JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).dependencies })
    const strangers = imports.filter(
      ({ to }) =>
        !/^(node:|bun(:|$))|\.(ts|json|sql|txt)$/.test(to) &&
        !names.some(name => to === name || to.startsWith(`${name}/`)),
    )
    expect(strangers.map(describeImport)).toEqual([])
  })
})

test('no file has more than 300 lines', () => {
  const long = files
    .map(file => ({ file, lines: readFileSync(join(root, file), 'utf8').split('\n').length - 1 }))
    .filter(({ lines }) => lines > 300)
  expect(long).toEqual([])
})

test('no two files load each other', () => {
  const loading = local.filter(({ isTypeOnly }) => !isTypeOnly)
  const pairs = new Set(loading.map(({ from, to }) => `${from} ${to}`))
  expect(loading.filter(({ from, to }) => pairs.has(`${to} ${from}`)).map(describeImport)).toEqual([])
})

/** Without its comments. */
function codeOf(file: string): string {
  return readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
}
