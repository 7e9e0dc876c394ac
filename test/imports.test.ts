import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

/** The rooms of this house and who may import whom. Imports go down only. */

const root = join(import.meta.dir, '..')
const files = [...new Bun.Glob('{src,plugins}/**/*.{ts,tsx}').scanSync(root)]
  .filter(file => !file.includes('node_modules') && !file.endsWith('.d.ts'))
  .sort()

interface Import {
  from: string
  /** A file of this repository, or the name of a package. */
  to: string
}

const imports: Import[] = files.flatMap(file => {
  const source = readFileSync(join(root, file), 'utf8')
  const statements = source.matchAll(/^(?:import|export)\b[^'"`;]*?\bfrom\s+'([^']+)'/gms)
  const bare = source.matchAll(/(?:^import|\bimport\()\s*'([^']+)'/gm)
  return [...[...statements].map(([, to = '']) => to), ...[...bare].map(([, to = '']) => to)].map(to => ({
    from: file,
    to: targetOf(file, to),
  }))
})

function targetOf(file: string, to: string): string {
  if (to === 'nsjail-wrapper') return 'plugins/nsjail/index.ts'
  return to.startsWith('.') ? relative(root, resolve(root, dirname(file), to)) : to
}

/** From the top down. A room may import what is below it, and of its own floor only what `sideways` names. */
const floors = [
  ['console'],
  ['main'],
  ['cli'],
  ['selftest'],
  ['app', 'start'],
  ['http', 'plugin-loader'],
  ['core', 'plugin-suite'],
  ['runs', 'gateway', 'backup'],
  ['guest', 'egress', 'db'],
  ['http1', 'stream', 'environment', 'disk', 'model'],
  ['plugin-api'],
  ['async', 'read', 'bounds', 'descriptor', 'errors', 'package.json'],
]
const sideways = ['async -> errors', 'read -> errors', 'read -> bounds', 'read -> async', 'model -> stream']

/** Rooms within rooms: each may import those that it names. `top` is every file that lies beside them and has no name here. */
const inner: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'src/core': {
    config: [],
    permissions: [],
    events: ['runtime', 'access'],
    observe: [],
    limits: [],
    audit: ['config', 'observe'],
    runtime: ['config', 'events', 'observe', 'audit', 'metrics', 'limits'],
    metrics: ['observe', 'runtime'],
    trust: ['runtime'],
    access: ['config', 'runtime', 'limits'],
    telemetry: ['metrics', 'observe', 'runtime'],
    secrets: ['runtime', 'access'],
    agents: ['config', 'permissions', 'runtime', 'access', 'secrets'],
    sandboxes: ['config', 'runtime', 'access', 'agents', 'secrets', 'trust'],
    server: ['config', 'runtime', 'access'],
    queue: ['config', 'runtime'],
    e2b: ['runtime', 'access', 'sandboxes', 'snapshots'],
    chat: ['config', 'permissions', 'runtime', 'access', 'agents', 'sandboxes', 'queue'],
    approvals: ['config', 'permissions', 'runtime', 'access', 'agents', 'sandboxes', 'queue', 'chat'],
    snapshots: ['runtime', 'access', 'agents', 'sandboxes', 'secrets', 'chat'],
    webhooks: ['runtime', 'access'],
    schedules: ['runtime', 'access', 'agents', 'chat', 'sandboxes', 'top'],
    deploy: ['config', 'permissions', 'runtime', 'access', 'agents', 'sandboxes', 'secrets'],
  },
  'src/guest': { wire: [], redirect: [], inside: ['wire', 'redirect'], host: ['wire', 'redirect'], tools: [] },
  'src/selftest': { inside: [], probes: ['top'], top: [] },
  'plugins/nsjail': {
    host: [],
    jail: ['host'],
    files: ['host', 'jail'],
    checks: ['host', 'jail', 'files'],
    backup: ['host', 'jail', 'files'],
    snapshots: ['host', 'jail', 'files', 'backup', 'top'],
    top: ['host', 'jail', 'files', 'checks', 'backup', 'snapshots'],
  },
  'plugins/ai-sdk': {
    model: [],
    tools: ['model'],
    mcp: ['tools'],
    context: ['model', 'tools'],
    top: ['model', 'tools', 'mcp', 'context'],
  },
}

/** What a program in a sandbox is made of: the guest, what runs an agent's own tools, and leaves. */
const runsInside = /^src\/(guest\/(inside|wire|redirect|tools)|selftest\/inside)\//
const mayRunInside =
  /^src\/(guest\/(inside|wire|redirect|tools)\/|selftest\/inside\/|(environment|plugin-api|async|read)\/|(bounds|descriptor|errors)\.ts$)/

const forPlugins =
  /^src\/((plugin-api|environment|async|read|disk)\/|guest\/(host|wire|redirect)\/|(bounds|descriptor|errors)\.ts$)/

const roomOf = (file: string): string | undefined => (file === 'package.json' ? file : /^src\/([^/.]+)/.exec(file)?.[1])
const floorOf = (room: string) => floors.findIndex(rooms => rooms.includes(room))
const describeImport = ({ from, to }: Import) => `${from} -> ${to}`
const local = imports.filter(({ to }) => /\.(tsx?|json)$/.test(to) && !to.startsWith('node_modules'))

/** Fails with the rule that is broken, and where it is written. */
function expectNone(rule: string, violations: readonly string[]): void {
  const kept = { rule, writtenIn: 'test/imports.test.ts' }
  expect({ ...kept, violations: [...new Set(violations)].sort() }).toEqual({
    ...kept,
    violations: [],
  })
}

test('every file of src has its place', () => {
  const homeless = files.filter(file => file.startsWith('src/') && floorOf(roomOf(file) ?? '') < 0)
  expectNone('A file of src lies in a room that `floors` names.', homeless)
  expect(local.length).toBeGreaterThan(100)
})

test('docs/architecture.md names every room', () => {
  const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const outer = floors.flat().filter(room => files.some(file => file.startsWith(`src/${room}/`)))
  const single = ['config', 'runtime']
  const ofCore = Object.keys(inner['src/core'] ?? {}).filter(room => !single.includes(room))
  expectNone('a room has its line', [
    ...outer.filter(room => !text.includes(`\`src/${room}/\``)),
    ...ofCore.filter(room => !text.includes(`\`${room}\``)),
  ])
})

test('imports go down only, types too', () => {
  const upward = local.filter(({ from, to }) => {
    const [above = '', below = ''] = [roomOf(from), roomOf(to)]
    if (!above || !below || above === below || sideways.includes(`${above} -> ${below}`)) return false
    return floorOf(above) >= floorOf(below)
  })
  expectNone('A room imports what is below it in `floors`.', upward.map(describeImport))
})

test('rooms within rooms know each other only as they are drawn', () => {
  const wrong = Object.entries(inner).flatMap(([house, rooms]) =>
    local.filter(({ from, to }) => {
      const inside = (file: string) => {
        const [, name = '', next] = file.startsWith(`${house}/`)
          ? (/^([^/.]+)(.)/.exec(file.slice(house.length + 1)) ?? [])
          : []
        return next === '.' && !(name in rooms) ? 'top' : name
      }
      const [above = '', below = ''] = [inside(from), inside(to)]
      return above && below && above !== below && !rooms[above]?.includes(below)
    }),
  )
  expectNone('A room within a room imports what `inner` names.', wrong.map(describeImport))
})

test('no two files import each other, by whatever way, types too', () => {
  expectNone('Imports make no circle.', circles(local.filter(({ from, to }) => from !== to)))
})

test('http reaches sandboxes, rules and tables through core', () => {
  const around = local.filter(
    ({ from, to }) => from.startsWith('src/http/') && /^src\/(egress|guest|environment|db)\//.test(to),
  )
  expectNone(
    'http imports nothing of egress, guest, environment and db: domain types are in src/model.',
    around.map(describeImport),
  )
})

test('the console is a page: it knows the server by its API alone, and no room knows the page', () => {
  const across = local.filter(({ from, to }) => from.startsWith('src/console/') !== to.startsWith('src/console/'))
  expectNone('The console imports its own files and packages.', across.map(describeImport))
})

test('one file names the plugins', () => {
  const naming = local.filter(({ from, to }) => from.startsWith('src/') && to.startsWith('plugins/'))
  expect([...new Set(naming.map(({ from }) => from))]).toEqual(['src/start/plugins.ts'])
})

test('plugins import the plugin interfaces, the host’s end of the guest, leaves and their own files', () => {
  const outside = local.filter(({ from, to }) => {
    if (!from.startsWith('plugins/')) return false
    const own = from.split('/').slice(0, 2).join('/')
    return !to.startsWith(`${own}/`) && !forPlugins.test(to)
  })
  expectNone('A plugin imports what `forPlugins` names.', outside.map(describeImport))
})

test('nothing that runs inside a sandbox imports what is the server’s', () => {
  const outside = local.filter(({ from, to }) => runsInside.test(from) && !mayRunInside.test(to))
  expectNone('What runs inside imports what `mayRunInside` names.', outside.map(describeImport))
})

describe('packages', () => {
  const importers = (pattern: RegExp) => [
    ...new Set(imports.filter(({ to }) => pattern.test(to)).map(({ from }) => from)),
  ]

  test('Elysia is in app.ts and http/ only', () => {
    const all = importers(/^(elysia|@elysiajs\/.*)$/)
    expect(all.filter(file => !/^src\/(app\.ts|http\/)/.test(file))).toEqual([])
    expect(all).toContain('src/http/elysia.ts')
  })

  test('a database is opened in db/ only', () => {
    const opening = importers(/^bun:sqlite$/).filter(file => /\bnew Database\(|\bDatabase\.open\(/.test(codeOf(file)))
    expect(opening.sort()).toEqual([
      'src/db/copy-sandboxes.ts',
      'src/db/copy-schema.ts',
      'src/db/earlier-copies.ts',
      'src/db/lock.ts',
      'src/db/open.ts',
      'src/db/read-beside.ts',
      'src/db/snapshot.ts',
    ])
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
        !/^(node:|bun(:|$))|\.(tsx?|json|sql|txt|sh|pl|css)$/.test(to) &&
        !names.some(name => to === name || to.startsWith(`${name}/`)),
    )
    expect(strangers.map(describeImport)).toEqual([])
  })
})

test('a function of more than 100 lines says why', () => {
  const unexplained = files
    .filter(file => !file.startsWith('src/plugin-suite/'))
    .flatMap(file => {
      const lines = readFileSync(join(root, file), 'utf8').split('\n')
      return lines.flatMap((line, index) => {
        const name =
          /^(?:export )?(?:async )?function\*? (\w+)/.exec(line)?.[1] ??
          /^(?:export )?const (\w+) = .*=> ?[({]+$/.exec(line)?.[1]
        if (name === undefined) return []
        const length =
          lines.slice(index + 1).findIndex(each => /^[})\]]/.test(each) && !/^\)[:;]? .*\{$/.test(each)) + 2
        const comment = lines.slice(Math.max(0, index - 6), index).join('\n')
        return length > 100 && !comment.includes('Over 100 lines:') ? [`${file}: ${name} has ${length} lines`] : []
      })
    })
  expectNone(
    'A function outside of suites has at most 100 lines, or its comment says "Over 100 lines:" and why.',
    unexplained,
  )
})

test('no file has more than 300 lines', () => {
  const long = files
    .map(file => ({ file, lines: readFileSync(join(root, file), 'utf8').split('\n').length - 1 }))
    .filter(({ lines }) => lines > 300)
  expect(long).toEqual([])
})

/** Each circle of imports once, as the files that it goes through. Tarjan's strongly connected components. */
function circles(edges: readonly Import[]): string[] {
  const next = Map.groupBy(edges, ({ from }) => from)
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const found: string[] = []
  const visit = (file: string) => {
    index.set(file, index.size)
    low.set(file, index.get(file)!)
    stack.push(file)
    for (const { to } of next.get(file) ?? []) {
      if (!index.has(to)) visit(to)
      if (stack.includes(to)) low.set(file, Math.min(low.get(file)!, low.get(to)!))
    }
    if (low.get(file) !== index.get(file)) return
    const component = stack.splice(stack.indexOf(file))
    if (component.length > 1) found.push(component.sort().join(' <-> '))
  }
  for (const file of next.keys()) if (!index.has(file)) visit(file)
  return found
}

/** Without its comments. */
function codeOf(file: string): string {
  return readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
}
