import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { ripgrepCommand } from '../../../plugins/ai-sdk/tools/grep-command.ts'
import { openTestSandbox, type TestSandbox } from '../../support/sandbox.ts'
import { errorOf, toolsIn, type UseTool } from './tools.ts'

let sandbox: TestSandbox
let use: UseTool
beforeAll(async () => {
  sandbox = await openTestSandbox()
  use = await toolsIn(sandbox)
  await sandbox.shell(
    `mkdir -p /srv/p/src/deep /srv/p/node_modules/x /srv/p/.git && cd /srv/p &&
     printf 'alpha\\nBeta 12\\ngamma $HOME\\n' > src/a.ts && printf 'beta\\nbeta\\n' > src/deep/b.tsx &&
     echo alpha > node_modules/x/c.ts && echo alpha > .git/config && printf 'al\\0pha' > src/bin.ts &&
     echo 'x;y' > "src/odd name.js" && echo '*.txt' > .gitignore && echo hidden > ignored.txt && echo hidden > .dot && touch -d 2020-01-01 src/a.ts`,
  )
}, 60_000)
afterAll(() => sandbox.close(), 60_000)

describe('Glob', () => {
  const rows: [string, object, string][] = [
    ['finds below, the last changed first', { pattern: '**/*.ts' }, '/srv/p/src/bin.ts\n/srv/p/src/a.ts'],
    ['finds one level', { pattern: 'src/*.tsx' }, 'No files found'],
    ['takes choices', { pattern: 'src/**/*.{tsx,js}' }, '/srv/p/src/deep/b.tsx'],
    ['takes an absolute pattern', { pattern: '/srv/p/src/deep/*' }, '/srv/p/src/deep/b.tsx'],
    ['takes an absolute path', { pattern: '/srv/p/src/a.ts' }, '/srv/p/src/a.ts'],
    ['looks into node_modules when asked', { pattern: 'node_modules/**/*.ts' }, '/srv/p/node_modules/x/c.ts'],
  ]
  test.each(rows)('%s', async (_, input, output) => {
    const found = String(await use('Glob', { path: '/srv/p', ...input }))
    expect(
      found
        .split('\n')
        .filter(line => !line.includes('odd'))
        .join('\n'),
    ).toBe(output)
  })

  test('says when there are too many', async () => {
    await sandbox.shell('mkdir -p /srv/many && cd /srv/many && touch $(seq 150)')
    const lines = String(await use('Glob', { pattern: '*', path: '/srv/many' })).split('\n')
    expect([lines.length, lines.at(-1)]).toEqual([
      101,
      '(Results are truncated. Consider using a more specific path or pattern.)',
    ])
    expect(await errorOf(use('Glob', { pattern: '*', path: '/srv/none' }))).toBe('Directory does not exist: /srv/none')
  })
})

describe('Grep', () => {
  const rows: [string, object, string][] = [
    ['lists files', { pattern: 'alpha' }, 'Found 1 file\n/srv/p/src/a.ts'],
    ['finds nothing', { pattern: 'omega' }, 'No files found'],
    ['shows lines', { pattern: 'Beta \\d+', output_mode: 'content' }, '/srv/p/src/a.ts:2:Beta 12'],
    [
      'shows lines without numbers',
      { pattern: 'Beta', output_mode: 'content', '-n': false },
      '/srv/p/src/a.ts:Beta 12',
    ],
    [
      'ignores case and takes a glob',
      { pattern: 'BETA', '-i': true, glob: '**/*.{js,tsx}', output_mode: 'content' },
      '/srv/p/src/deep/b.tsx:1:beta\n/srv/p/src/deep/b.tsx:2:beta',
    ],
    [
      'shows what is around',
      { pattern: 'Beta', output_mode: 'content', '-C': 1 },
      '/srv/p/src/a.ts-1-alpha\n/srv/p/src/a.ts:2:Beta 12\n/srv/p/src/a.ts-3-gamma $HOME',
    ],
    [
      'sorts by path, and parts what does not follow',
      { pattern: 'alpha|gamma|^beta', output_mode: 'content', '-A': 0, '-B': 0 },
      '/srv/p/src/a.ts:1:alpha\n/srv/p/src/a.ts:3:gamma $HOME\n/srv/p/src/deep/b.tsx:1:beta\n/srv/p/src/deep/b.tsx:2:beta',
    ],
    ['looks at ignored files too', { pattern: 'hidden' }, 'Found 2 files\n/srv/p/.dot\n/srv/p/ignored.txt'],
    ['leaves binary files out', { pattern: 'al', path: '/srv/p/src/bin.ts' }, 'No files found'],
    ['counts', { pattern: 'beta', output_mode: 'count' }, 'Found 2 matching lines in 1 files\n/srv/p/src/deep/b.tsx:2'],
    [
      'gives only the first',
      { pattern: 'beta', output_mode: 'content', head_limit: 1 },
      '/srv/p/src/deep/b.tsx:1:beta\n[1 more not shown. Narrow the search.]',
    ],
    ['searches one file', { pattern: 'x;y', path: '/srv/p/src/odd name.js' }, 'Found 1 file\n/srv/p/src/odd name.js'],
    ['takes a pattern that looks like a flag', { pattern: '--help', output_mode: 'content' }, 'No matches found'],
    ['runs nothing of a pattern', { pattern: '$(touch /tmp/pwned); `touch /tmp/pwned`' }, 'No files found'],
  ]
  /** Whether ripgrep is here depends on the host. */
  const isHere = (program: string) =>
    spawnSync('sh', ['-c', `echo a | ${program.includes(' ') ? program : `${program} -e`} a`]).status === 0
  const ways: [string, string[]][] = [
    ['grep with Perl’s expressions', ['grep -P']],
    ['ripgrep alone', ['rg']],
    ['ripgrep with Perl’s expressions', ['rg', 'rg -P', 'grep -P']],
  ]
  describe.each(ways.filter(([, programs]) => programs.every(isHere)))('by %s', (_, programs) => {
    test.each(rows)('%s', async (_, input, output) => {
      expect(await use('Grep', { path: '/srv/p', ...input }, { programs: new Set(programs) })).toBe(output)
    })
    test('tells a wrong expression', async () => {
      const asking = use('Grep', { pattern: '(', path: '/srv/p' }, { programs: new Set(programs) })
      expect(await errorOf(asking)).toBe('The pattern is no valid regular expression: (')
    })
  })

  test('works where grep knows no Perl expressions', async () => {
    const input = { pattern: 'Beta [0-9]+', path: '/srv/p', output_mode: 'content' }
    expect(await use('Grep', input, { programs: new Set() })).toBe('/srv/p/src/a.ts:2:Beta 12')
  })

  test('tells a missing path', async () => {
    expect(await errorOf(use('Grep', { pattern: 'a', path: '/srv/none' }))).toBe('Path does not exist: /srv/none')
    expect(await sandbox.shell('ls /tmp')).toBe('')
  })

  test('asks ripgrep in its own words where it is there', () => {
    const query = { root: '/a', mode: 'content', pattern: '-x', glob: '*.ts', ignoreCase: true } as const
    expect(ripgrepCommand({ ...query, before: 1, after: 2 }, false).slice(8)).toEqual([
      ...[
        '-i',
        '-n',
        '-B',
        '1',
        '-A',
        '2',
        '--glob=*.ts',
        '--glob=!.git',
        '--glob=!node_modules',
        '--regexp=-x',
        '--',
        '/a',
      ],
    ])
  })
})
