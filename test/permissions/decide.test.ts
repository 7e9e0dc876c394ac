import { describe, expect, test } from 'bun:test'
import { createPermissions, type PermissionsInit } from '../../src/core/permissions/decide.ts'
import { narrowRule } from '../../src/core/permissions/narrow-rule.ts'
import { findAllowing, findMatching, parseRule, readCall } from '../../src/core/permissions/rule.ts'

const place = { cwd: '/home/user/app', home: '/home/user' }

describe('paths', () => {
  const read = (path: string) => ['Read', { file_path: path }] as const
  const covered: [string, readonly [string, object]][] = [
    ['Read(/home/user/**)', read('/home/user/a/b.txt')],
    ['Read(//home/user/**)', read('/home/user/a/b.txt')],
    ['Read(~/**)', read('~/a')],
    ['Read(~/**)', read('/home/user/a')],
    ['Read(src/**)', read('src/a.ts')],
    ['Read(src/**)', read('/home/user/app/src/x/../a.ts')],
    ['Read(src/*.ts)', read('src/a.ts')],
    ['Read(src/?.ts)', read('src/a.ts')],
    ['Read(**/*.md)', read('docs/a/b.md')],
    ['Read(app/[id]/page.tsx)', read('app/[id]/page.tsx')],
    ['Read(/home/user/**)', ['Glob', { pattern: '**/*.ts' }]],
    ['Read(/home/user/**)', ['Grep', { pattern: 'x', path: '/home/user' }]],
    ['Read(/home/user/**)', ['LS', { path: '/home/user/app' }]],
    ['Read', ['Grep', { pattern: 'x' }]],
    ['Edit(src/**)', ['Write', { file_path: 'src/a.ts', content: '' }]],
    ['Edit(src/**)', ['MultiEdit', { file_path: 'src/a.ts' }]],
    ['Edit(src/**)', ['NotebookEdit', { notebook_path: 'src/a.ipynb' }]],
    ['Edit', ['Write', {}]],
    ['WebFetch(domain:example.com)', ['WebFetch', { url: 'https://EXAMPLE.com./x' }]],
    ['WebFetch(domain:*.example.com)', ['WebFetch', { url: 'https://a.b.example.com' }]],
    ['mcp__db', ['mcp__db__query', {}]],
    ['mcp__db__*', ['mcp__db__query', {}]],
    ['mcp__db__query', ['mcp__db__query', {}]],
    ['Task', ['Task', {}]],
    ['*', ['Anything', {}]],
  ]
  test.each(covered)('%s allows %j', (rule, [name, input]) => {
    expect(findAllowing([parseRule(rule)], readCall(name, input, place))).toBeDefined()
    expect(findMatching([parseRule(rule)], readCall(name, input, place))).toBeDefined()
  })

  const outside: [string, readonly [string, object]][] = [
    ['Read(/home/user/**)', read('/home/user/../other/a')],
    ['Read(/home/user/**)', read('/home/username/a')],
    ['Read(~/**)', read('~other/../../../etc/passwd')],
    ['Read(src/**)', read('src/../../secret')],
    ['Read(src/*)', read('src/a/b')],
    ['Read(src/**)', ['Glob', { pattern: '/etc/*' }]],
    ['Read(src/**)', ['Glob', { pattern: '/{etc,home}/**', path: 'src' }]],
    ['Read(src/**)', ['Grep', { pattern: 'x' }]],
    ['Read(src/*)', ['Grep', { pattern: 'x', path: 'src' }]],
    ['Read(/home/user/**)', read('/proc/self/root/home/user/a')],
    ['Read(/**)', read('/proc/self/cwd/a')],
    ['Read(src/**)', ['Read', { file_path: 'src/a', path: '/etc/passwd' }]],
    ['Read(src/**)', ['Read', {}]],
    ['Read(src/**)', ['Read', { file_path: ['src/a'] }]],
    ['Read(src/**)', ['Edit', { file_path: 'src/a' }]],
    ['Write', ['Edit', {}]],
    ['WebFetch(domain:example.com)', ['WebFetch', { url: 'https://example.com.evil.org' }]],
    ['WebFetch(domain:example.com)', ['WebFetch', { url: 'https://example.com@evil.org' }]],
    ['WebFetch(domain:example.com)', ['WebFetch', { url: 'https://evil.org/example.com' }]],
    ['WebFetch(domain:example.com)', ['WebFetch', { url: 'https://www.example.com' }]],
    ['WebFetch(domain:*.example.com)', ['WebFetch', { url: 'https://evilexample.com' }]],
    ['WebFetch(domain:example.com)', ['WebFetch', {}]],
    ['mcp__db', ['mcp__dbx__query', {}]],
    ['mcp__db__query', ['mcp__db__query2', {}]],
  ]
  test.each(outside)('%s allows no %j regression', (rule, [name, input]) => {
    expect(findAllowing([parseRule(rule)], readCall(name, input, place))).toBeUndefined()
  })

  const denied: [string, readonly [string, object]][] = [
    ['Read(.env)', read('.env')],
    ['Read(.env)', read('a/b/.env')],
    ['Read(secret)', read('secret/a')],
    ['Read(secret/)', read('secret/a/b')],
    ['Read(secret/**)', read('/home/user/app/x/../secret/a')],
    ['Read(secret/**)', read('/proc/self/cwd/secret/a')],
    ['Read(secret/**)', ['LS', { path: 'secret' }]],
    ['Read(secret/**)', ['Grep', { pattern: '.' }]],
    ['Read(.env)', ['Grep', { pattern: '.', glob: '.e*' }]],
    ['Read(secret/**)', ['Read', {}]],
    ['Read(secret/**)', read(`${'a/'.repeat(3000)}b`)],
    ['WebFetch(domain:example.com)', ['WebFetch', { url: 'https://www.example.com' }]],
    ['WebFetch(domain:example.com)', ['WebFetch', { url: 'not a url' }]],
  ]
  test.each(denied)('%s denies %j regression', (rule, [name, input]) => {
    expect(findMatching([parseRule(rule)], readCall(name, input, place))).toBeDefined()
  })

  test.each([
    ['Read(secret/**)', ['Grep', { pattern: '.', path: 'src' }]],
    ['Read(secret/**)', ['Glob', { pattern: '**' }]],
    ['Read(.env)', ['Grep', { pattern: '.', glob: '*.ts' }]],
    ['Read(src/.env)', read('.env')],
    ['Read(secret/**)', read('secrets/a')],
    ['WebFetch(domain:example.com)', ['WebFetch', { url: 'https://example.org' }]],
  ] as [string, readonly [string, object]][])('%s leaves %j', (rule, [name, input]) => {
    expect(findMatching([parseRule(rule)], readCall(name, input, place))).toBeUndefined()
  })
})

const calls = {
  read: ['Read', { file_path: 'a' }],
  edit: ['Edit', { file_path: 'a' }],
  outside: ['Write', { file_path: '../a' }],
  bash: ['Bash', { command: 'ls' }],
  push: ['Bash', { command: 'git push' }],
  fetch: ['WebFetch', { url: 'https://example.com' }],
  mcp: ['mcp__a__b', {}],
  page: ['showMap', {}],
} as const

const decide = (call: keyof typeof calls, init: Partial<PermissionsInit>) => {
  const all = { agent: {}, chat: {}, asks: true, canAsk: true, place, clientTools: ['showMap'], ...init }
  const [name, input] = calls[call]
  return createPermissions(all).decide(name, input).decision
}

/** What a mode says of: read, edit, outside, bash, fetch, mcp, page. */
const modes: [string, string][] = [
  ['default', 'allow ask ask ask allow ask allow'],
  ['acceptEdits', 'allow allow ask ask allow ask allow'],
  ['plan', 'allow deny deny deny allow deny allow'],
  ['bypassPermissions', 'allow allow allow allow allow allow allow'],
  ['a mode that is not known', 'allow ask ask ask allow ask allow'],
]
const each = ['read', 'edit', 'outside', 'bash', 'fetch', 'mcp', 'page'] as const

test.each(modes)('the mode %s: %s', (permissionMode, expected) => {
  expect(each.map(call => decide(call, { agent: { permissionMode } })).join(' ')).toBe(expected)
  // Where nobody is asked, an agent's mode denies what it did before, and nothing else.
  const off = each.map(call => decide(call, { agent: { permissionMode }, asks: false })).join(' ')
  expect(off).toBe(expected.replaceAll('ask', 'allow'))
})

test('an agent that asks without a mode has the mode default; one that does not ask allows all', () => {
  expect(decide('bash', {})).toBe('ask')
  expect(decide('bash', { asks: false })).toBe('allow')
})

/** Options of the agent and of the chat, a call, and what is decided when the agent asks, and when it does not. */
const rules: [string, object, object, keyof typeof calls, string, string][] = [
  ['a rule that allows', { allow: ['Bash(git push:*)'] }, {}, 'push', 'allow', 'allow'],
  [
    'deny before ask and allow',
    { allow: ['Bash'], ask: ['Bash'], deny: ['Bash(git push:*)'] },
    {},
    'push',
    'deny',
    'deny',
  ],
  ['ask before allow', { allow: ['Bash'], ask: ['Bash(git push:*)'] }, {}, 'push', 'ask', 'allow'],
  [
    'ask where nothing allows',
    { permissionMode: 'bypassPermissions', ask: ['Bash(git push:*)'] },
    {},
    'push',
    'ask',
    'deny',
  ],
  ['ask for what only reads', { ask: ['WebFetch'] }, {}, 'fetch', 'ask', 'deny'],
  ['allow before plan', { permissionMode: 'plan', allow: ['Bash(ls)'] }, {}, 'bash', 'allow', 'allow'],
  ['deny before bypass', { permissionMode: 'bypassPermissions', deny: ['Bash'] }, {}, 'bash', 'deny', 'deny'],
  [
    'a disallowed tool',
    { permissionMode: 'bypassPermissions', disallowedTools: ['Bash(rm:*)'] },
    {},
    'bash',
    'deny',
    'deny',
  ],
  [
    'a disallowed tool alone',
    { permissionMode: 'bypassPermissions', disallowedTools: ['Read'] },
    {},
    'edit',
    'allow',
    'allow',
  ],
  ['a rule for a tool of the client', { ask: ['showMap'] }, {}, 'page', 'ask', 'deny'],
  ['a chat that denies', { permissionMode: 'bypassPermissions' }, { deny: ['Bash'] }, 'bash', 'deny', 'deny'],
  ['a chat that asks', { permissionMode: 'bypassPermissions' }, { ask: ['Bash'] }, 'bash', 'ask', 'deny'],
  ['a chat in plan mode', { permissionMode: 'bypassPermissions' }, { permissionMode: 'plan' }, 'bash', 'deny', 'deny'],
  [
    'a chat in default mode',
    { permissionMode: 'bypassPermissions' },
    { permissionMode: 'default' },
    'bash',
    'ask',
    'allow',
  ],
  [
    'an allow of the chat for its own mode',
    { permissionMode: 'bypassPermissions' },
    { permissionMode: 'default', allow: ['Bash(ls)'] },
    'bash',
    'allow',
    'allow',
  ],
]
test.each(rules)('%s', (_, agent, chat, call, on, off) => {
  expect(decide(call, { agent, chat })).toBe(on as never)
  expect(decide(call, { agent, chat, asks: false })).toBe(off as never)
})

test('a chat allows nothing that its agent does not allow regression', () => {
  const chat = { permissionMode: 'bypassPermissions', allow: ['Bash', '*'] }
  expect(decide('bash', { agent: { permissionMode: 'default' }, chat })).toBe('ask')
  expect(decide('bash', { agent: { permissionMode: 'plan' }, chat })).toBe('deny')
  expect(decide('bash', { agent: { deny: ['Bash'] }, chat })).toBe('deny')
  expect(decide('bash', { agent: { ask: ['Bash'], permissionMode: 'bypassPermissions' }, chat, asks: false })).toBe(
    'deny',
  )
})

test('an agent that asks on an engine that cannot wait is denied what it would ask for regression', () => {
  expect(decide('bash', { canAsk: false })).toBe('deny')
  expect(decide('read', { canAsk: false })).toBe('allow')
})

test('a remembered rule answers what asks, and allows nothing that is denied regression', () => {
  expect(decide('bash', { remembered: ['Bash(ls)'] })).toBe('allow')
  expect(decide('push', { remembered: ['Bash(ls)'] })).toBe('ask')
  expect(decide('bash', { agent: { ask: ['Bash'] }, remembered: ['Bash(ls)'] })).toBe('allow')
  expect(decide('bash', { agent: { deny: ['Bash'] }, remembered: ['Bash(ls)'] })).toBe('deny')
})

test('a tool that its engine knows to change nothing asks by rules alone', () => {
  const { decide: ask } = createPermissions({ agent: {}, chat: {}, asks: true, canAsk: true, place })
  expect(ask('mcp__a__b', {}, { isReadOnly: true }).decision).toBe('allow')
  expect(ask('mcp__a__b', {}).decision).toBe('ask')
})

test('what is decided says why', () => {
  const { decide: ask } = createPermissions({
    agent: { deny: ['Bash(rm:*)'] },
    chat: {},
    asks: true,
    canAsk: true,
    place,
  })
  expect(ask('Bash', { command: 'rm x' }).reason).toBe('The rule Bash(rm:*) denies this call of Bash.')
  expect(ask('Bash', { command: 'ls' }).reason).toBe('The mode default asks before Bash.')
})

describe('the rule that a person remembers', () => {
  test.each([
    ['Bash', { command: 'git push' }, 'Bash(git push)'],
    ['Bash', { command: 'ls *.ts && rm :*' }, 'Bash(ls \\*.ts && rm :\\*)'],
    ['Bash', { command: '*' }, 'Bash(\\*)'],
    ['Bash', { command: 'echo "a\nb" > c)' }, 'Bash(echo "a\nb" > c))'],
    ['Write', { file_path: 'src/a.ts' }, 'Edit(/home/user/app/src/a.ts)'],
    ['Edit', { file_path: '/x/*.ts' }, 'Edit(/x/\\*.ts)'],
    ['Read', { file_path: '~/a' }, 'Read(/home/user/a)'],
    ['Grep', { pattern: 'x' }, 'Read(/home/user/app/**)'],
    ['WebFetch', { url: 'https://Example.com/a' }, 'WebFetch(domain:example.com)'],
    ['mcp__a__b', {}, 'mcp__a__b'],
    ['RunCode', { code: '1' }, 'RunCode'],
    ['Bash', {}, undefined],
    ['Bash', { command: 'a'.repeat(9000) }, undefined],
    ['WebFetch', { url: '' }, undefined],
    ['a name', {}, undefined],
  ] as [string, object, string | undefined][])('%s %j: %s', (name, input, rule) => {
    expect(narrowRule(name, input, place)).toBe(rule as string)
  })

  test('it allows no other command, whatever its characters mean in a rule regression', () => {
    for (const [command, other] of [
      ['rm a:*', 'rm a b'],
      ['rm *', 'rm x'],
      ['*', 'rm x'],
      ['git *', 'git push'],
      ['echo \\*', 'echo \\x'],
    ] as const) {
      const rule = parseRule(narrowRule('Bash', { command }, place) ?? '')
      expect(findAllowing([rule], readCall('Bash', { command }, place))).toBeDefined()
      expect(findAllowing([rule], readCall('Bash', { command: other }, place))).toBeUndefined()
    }
  })
})

test('what is remembered allows nothing that two rules make together, nor longer names regression', () => {
  const { decide: ask } = createPermissions({
    ...{ agent: {}, chat: {}, asks: true, canAsk: true, place },
    remembered: ['Bash(cat notes)', 'Bash(bash < safe.sh)', 'Bash(npm test)', 'mcp__db__get', 'mcp__db__set__'],
  })
  const run = (command: string) => ask('Bash', { command }).decision
  expect(['cat notes', 'bash < safe.sh', 'npm test', 'npm  test'].map(run)).toEqual(Array(4).fill('allow'))
  expect(['bash', 'cat notes | bash', 'cat notes && npm test', 'npm test < safe.sh'].map(run)).toEqual(
    Array(4).fill('ask'),
  )
  const call = (name: string) => ask(name, {}).decision
  expect(['mcp__db__get', 'mcp__db__set__'].map(call)).toEqual(['allow', 'allow'])
  expect(['mcp__db__get__all', 'mcp__db__set', 'mcp__db__set__x', 'mcp__db__set__x'].map(call)).toEqual(
    Array(4).fill('ask'),
  )
})
