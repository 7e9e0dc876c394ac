import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { useOneOffs } from './support.ts'

const oneOffs = useOneOffs()
const write = (name: string, text: string) => writeFileSync(join(oneOffs.directory, name), text)
const read = (name: string) => readFileSync(join(oneOffs.directory, name), 'utf8')

describe('a command', () => {
  const rows: [string, string[], { stdout?: string; stderr?: string; code?: number }][] = [
    [
      'gives its streams and its exit code',
      ['--', 'echo out; echo bad >&2; exit 7'],
      { stdout: 'out\n', stderr: 'bad\n', code: 7 },
    ],
    ['gives 128 and the number for a signal', ['--', 'kill -9 $$'], { code: 137 }],
    ['of several words is run as it is', ['--', 'printf', '%s|', 'a b', '$HOME'], { stdout: 'a b|$HOME|' }],
    ['may have flags of its own', ['--', 'echo', '--help', '--json'], { stdout: '--help --json\n' }],
    ['reads what is piped', ['--', 'tr a-z A-Z'], { stdout: 'PIPED' }],
    ['need not read it', ['--', 'true'], {}],
    [
      'has the variables',
      ['--env', 'A=1=2', '--env=B=', '--', 'echo "$A,$B,$(printenv C || echo none)"'],
      { stdout: '1=2,,none\n' },
    ],
    [
      'has a variable of the caller, who need not write it down',
      ['--env', 'SECRET', '--', 'echo $SECRET'],
      { stdout: 'hidden\n' },
    ],
    ['has nothing else of the caller', ['--', 'printenv SECRET || echo none; ls'], { stdout: 'none\n' }],
    [
      'is told of as JSON',
      ['--json', '--', 'echo a; exit 3'],
      { stdout: '{"type":"stdout","data":"a\\n"}\n{"type":"exit","exitCode":3}\n', code: 3 },
    ],
    [
      'keeps to the limits of the flags',
      [
        '--processes',
        '20',
        '--',
        // Once they are there, the shell itself is refused a fork: the rest does without.
        'exec 2>errors; (for i in {1..40}; do sleep 1 & done); while read -r line; do case $line in *fork*) echo limited; exit;; esac; done <errors',
      ],
      { stdout: 'limited\n' },
    ],
  ]
  test.each(rows)('%s', async (_, args, wanted) => {
    const result = await oneOffs.run(['exec', ...args], { stdin: 'piped', env: { SECRET: 'hidden' } })
    expect(result).toEqual({ code: 0, stdout: '', stderr: '', ...wanted })
  })

  test('carries megabytes of any bytes both ways', async () => {
    const bytes = Buffer.from(crypto.getRandomValues(new Uint8Array(65_536)))
      .toString('latin1')
      .repeat(40)
    const { code, stdout } = await oneOffs.run(['exec', '--', 'cat | md5sum; head -c 3000000 /dev/zero | tr "\\0" x'], {
      stdin: bytes,
    })
    const [sum = '', rest = ''] = stdout.split('\n')
    expect([code, sum.slice(0, 32), rest.length]).toEqual([
      0,
      new Bun.CryptoHasher('md5').update(bytes).digest('hex'),
      3_000_000,
    ])
  })
})

describe('files', () => {
  test('and directories go in, with what may be executed and the links', async () => {
    mkdirSync(join(oneOffs.directory, 'tree/deep'), { recursive: true })
    write('tree/deep/run.sh', '#!/bin/sh\necho ran\n')
    chmodSync(join(oneOffs.directory, 'tree/deep/run.sh'), 0o700)
    symlinkSync('deep/run.sh', join(oneOffs.directory, 'tree/link'))
    write('plain', 'text')
    const args = [
      '--file',
      'tree=work/tree',
      '--file',
      'plain=/srv/plain',
      '--',
      'work/tree/link; readlink work/tree/link; cat /srv/plain',
    ]
    expect((await oneOffs.run(['exec', ...args])).stdout).toBe('ran\ndeep/run.sh\ntext')
  })

  test('and directories come out, also after a command that failed', async () => {
    const command =
      'mkdir -p out/deep; echo a > out/a; echo b > out/deep/b; chmod 755 out/a; ln -s /etc/passwd out/link; echo c > c; exit 5'
    mkdirSync(join(oneOffs.directory, 'there'))
    const outs = ['--out', 'out=brought', '--out', '/home/user/c=there', '--out', 'c=new/c.txt']
    expect(await oneOffs.run(['exec', ...outs, '--', command])).toEqual({ code: 5, stdout: '', stderr: '' })
    expect([read('brought/a'), read('brought/deep/b'), read('there/c'), read('new/c.txt')]).toEqual([
      'a\n',
      'b\n',
      'c\n',
      'c\n',
    ])
    expect(statSync(join(oneOffs.directory, 'brought/a')).mode & 0o777).toBe(0o755)
    expect([...new Bun.Glob('**').scanSync({ cwd: join(oneOffs.directory, 'brought'), dot: true })].sort()).toEqual([
      'a',
      'deep/b',
    ])
  })

  test('do not include the sandbox, where --data-dir is in what goes in', async () => {
    const result = await oneOffs.run(['exec', '--data-dir', '.', '--file', '.=all', '--', 'ls all | grep threadbox-'])
    expect(result).toEqual({ code: 1, stdout: '', stderr: '' })
  })

  test('come out beside one that cannot', async () => {
    const command = 'mkdir mixed; echo a > mixed/a; mkfifo mixed/b; echo c > mixed/c'
    const { code, stderr } = await oneOffs.run(['exec', '--out', 'mixed=mixed', '--', command])
    expect([code, stderr]).toEqual([125, 'threadbox: --out mixed: Not a regular file: /home/user/mixed/b\n'])
    expect([read('mixed/a'), read('mixed/c')]).toEqual(['a\n', 'c\n'])
  })

  test('of holes alone do not fill this disk: regression', async () => {
    const outs = ['--out', 'small=small', '--out', 'holes=holes']
    const command = 'echo a > small; mkdir holes; truncate -s 3G holes/a; truncate -s 3G holes/b'
    expect(await oneOffs.run(['exec', '--disk-mb', '64', ...outs, '--', command])).toEqual({
      code: 125,
      stdout: '',
      stderr: 'threadbox: --out holes: more than the disk limit of the sandbox: see --disk-mb\n',
    })
    expect(read('small')).toBe('a\n')
    const sizes = readdirSync(join(oneOffs.directory, 'holes')).map(
      name => statSync(join(oneOffs.directory, 'holes', name)).size,
    )
    expect(sizes.every(size => size <= 64 * 2 ** 20)).toBe(true)
    rmSync(join(oneOffs.directory, 'holes'), { recursive: true })
  })

  test('that are not there are told of, and fail a command that did not', async () => {
    const result = await oneOffs.run(['exec', '--out', 'none=x', '--', 'echo done'])
    expect(result).toEqual({
      code: 125,
      stdout: 'done\n',
      stderr: 'threadbox: --out none: no such file in the sandbox\n',
    })
    expect((await oneOffs.run(['exec', '--out', 'none=x', '--', 'exit 9'])).code).toBe(9)
  })
})

describe('an agent’s file', () => {
  test('gives variables, files, directory and set-up, which comes after what goes in', async () => {
    const sandbox = {
      envs: { A: 'agent', B: 'agent' },
      files: { '/srv/f': 'f' },
      cwd: '/srv/work',
      setup: ['cat plain > copy'],
    }
    write('agent.json', JSON.stringify({ slug: 'maker', sandbox }))
    write('plain', 'went in')
    const args = ['--agent', 'agent.json', '--env', 'B=mine', '--file', 'plain=plain']
    const { stdout } = await oneOffs.run(['exec', ...args, '--', 'echo $A $B $PWD; cat /srv/f copy'])
    expect(stdout).toBe('agent mine /srv/work\nfwent in')
  })

  test('whose set-up fails ends it, with what was said', async () => {
    write('bad.json', JSON.stringify({ slug: 'bad', sandbox: { setup: ['echo no luck >&2; exit 3'] } }))
    expect(await oneOffs.run(['exec', '--agent', './bad.json', '--', 'true'])).toEqual({
      code: 125,
      stdout: '',
      stderr: 'threadbox: The set-up command 1 of 1 (echo …) ended with exit code 3: no luck\n',
    })
  })
})

describe('a mistake is told in a line, with exit code 2', () => {
  const rows: [string, string[], string][] = [
    ['no command', ['exec'], 'COMMAND… is missing. usage: threadbox exec '],
    ['no prompt', ['run'], 'PROMPT is missing. usage: threadbox run '],
    ['a setting that is none', ['exec', '--no-such', 'x', '--', 'true'], '--no-such: no such flag'],
    ['a flag without its value', ['exec', '--file'], '--file: wants a value'],
    ['half a copy', ['exec', '--out', 'x=', '--', 'true'], '--out wants INSIDE=LOCAL'],
    ['a variable that is not set', ['exec', '--env', 'NONE', '--', 'true'], '--env NONE: it is not set here'],
    ['a variable without a name', ['exec', '--env', '=x', '--', 'true'], '--env wants NAME=VALUE, or NAME'],
    ['a file that is not there', ['exec', '--file', 'none=x', '--', 'true'], '--file: there is no none'],
    ['an agent that is not there', ['exec', '--agent', 'none', '--', 'true'], '--agent: there is no agent none'],
    [
      'an agent’s file that is not there',
      ['exec', '--agent', './none.json', '--', 'true'],
      '--agent: ./none.json: no such file or directory',
    ],
    ['a backend that is not there', ['exec', '--backend', 'none', '--', 'true'], '--backend: there is no backend none'],
    [
      'no model',
      ['run', 'hello'],
      "--agent: there is no agent coder; it wants a model: set a provider's key or --model",
    ],
  ]
  test.each(rows)('%s', async (_, args, said) => {
    const { code, stdout, stderr } = await oneOffs.run(args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toStartWith(`threadbox: ${said}`)
  })
})

test('what the machine lacks is said as doctor says it, with an exit code of its own', async () => {
  const { code, stderr } = await oneOffs.run(['exec', '--nsjail-path', '/none', '--', 'true'])
  expect(code).toBe(125)
  expect(stderr).toMatch(/^threadbox: FAILED +nsjail: .+\n +remedy: ./)
})
