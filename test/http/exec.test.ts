import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { processesNamed } from '../support/leftovers.ts'
import { peakGrowth } from '../support/memory.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox({ envs: { OF_SANDBOX: 'sandbox', BOTH: 'sandbox' } })
})
const exec = (command: string, fields: object = {}) => app.exec(id, command, fields)
const newMarker = () => `sleep-${crypto.randomUUID()}`

describe('a command', () => {
  const cases: [string, string, object, object][] = [
    ['answers stdout', 'echo out', {}, { stdout: 'out\n' }],
    ['answers stderr', 'echo err >&2', {}, { stderr: 'err\n' }],
    ['answers its exit code with 200', 'exit 42', {}, { exitCode: 42 }],
    ['that does not exist is 127', 'no-such-command 2>/dev/null', {}, { exitCode: 127 }],
    ['killed by a signal is 128 and its number', 'kill -TERM $$', {}, { exitCode: 143 }],
    ['runs in /home/user', 'pwd', {}, { stdout: '/home/user\n' }],
    ['runs in cwd', 'pwd; echo $PWD', { cwd: '/tmp' }, { stdout: '/tmp\n/tmp\n' }],
    ['runs as root of the sandbox', 'id -u; echo $HOME $USER', {}, { stdout: '0\n/home/user root\n' }],
    ['has the sandbox’s variables', 'echo $OF_SANDBOX $BOTH', {}, { stdout: 'sandbox sandbox\n' }],
    [
      'has its own variables over them',
      'echo "$OF_SANDBOX $BOTH $OWN"',
      { envs: { BOTH: 'own', OWN: 'a "b"\n$c' } },
      { stdout: 'sandbox own a "b"\n$c\n' },
    ],
    ['is run by bash', '[[ a == a* ]] && echo {1..3} <(:) | cut -c1-5', {}, { stdout: '1 2 3\n' }],
    ['takes a heredoc', "cat <<'END'\n$HOME `x`\nEND\n", {}, { stdout: '$HOME `x`\n' }],
    ['takes several lines', 'x=1\nif [ $x = 1 ]; then\n  echo yes\nfi', {}, { stdout: 'yes\n' }],
    ['reads an empty stdin', 'cat; read x || echo end', {}, { stdout: 'end\n' }],
    ['has no terminal', 'test -t 0 || test -t 1 || test -t 2 || echo none', {}, { stdout: 'none\n' }],
    [
      'writes /dev/stdout and /dev/stderr',
      'echo o >/dev/stdout; echo e >/dev/stderr',
      {},
      { stdout: 'o\n', stderr: 'e\n' },
    ],
    ['writes /dev/fd/1 by way of a child', 'echo x | tee /dev/fd/2', {}, { stdout: 'x\n', stderr: 'x\n' }],
    ['is killed by SIGPIPE, as by default', `yes | head -1; echo \${PIPESTATUS[0]}`, {}, { stdout: 'y\n141\n' }],
    ['answers what is not UTF-8 with replacements', "printf 'a\\xff\\xfeb'", {}, { stdout: 'a\ufffd\ufffdb' }],
    ['answers NUL bytes', "printf 'a\\0b'", {}, { stdout: 'a\0b' }],
    [
      'answers UTF-8 whole, wherever pieces are cut',
      'for i in {1..70000}; do printf ü; done | wc -m',
      {},
      { stdout: '70000\n' },
    ],
    ['of 100 KB is taken', `echo ${'x'.repeat(100_000)} | wc -c`, {}, { stdout: '100001\n' }],
    [
      'leaves signals as they are by default',
      'grep -E "^Sig(Blk|Ign)" /proc/self/status',
      {},
      {
        stdout: 'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n',
      },
    ],
    ['has only three open files', 'ls /proc/self/fd | wc -l', {}, { stdout: '4\n' }],
    ['sees none of the server’s variables', 'env | grep -ci threadbox', {}, { stdout: '0\n', exitCode: 1 }],
  ]
  for (const [name, command, fields, expected] of cases) {
    test(name, async () => {
      expect(await exec(command, fields)).toEqual({
        stdout: '',
        stderr: '',
        exitCode: 0,
        truncated: false,
        ...expected,
      })
    })
  }

  test('in a missing directory is an error that says so', async () => {
    const { status, body } = await app.ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'pwd', cwd: '/no/such' })
    expect(status).toBe(400)
    expect(body.error).toMatchObject({ code: 'invalid_request', message: 'cwd: no such directory: /no/such' })
  })

  test('sees what an earlier one has written', async () => {
    await exec('echo kept > kept')
    expect((await exec('cat kept')).stdout).toBe('kept\n')
  })
})

describe('a time-out', () => {
  const escapes: [string, (marker: string) => string][] = [
    ['itself', marker => `exec -a ${marker} sleep 1000`],
    ['a child', marker => `(exec -a ${marker} sleep 1000); :`],
    ['a background child', marker => `(exec -a ${marker} sleep 1000) & wait`],
    ['what fled to a session of its own', marker => `setsid -f bash -c 'exec -a ${marker} sleep 1000'; sleep 1000`],
    ['what forked twice', marker => `( (exec -a ${marker} sleep 1000) & ) & sleep 1000`],
    [
      'what dropped its environment',
      marker => `env -i /usr/bin/setsid -f /bin/bash -c 'exec -a ${marker} sleep 1000'; sleep 1000`,
    ],
    ['what ignores signals', marker => `trap '' TERM INT HUP; (exec -a ${marker} sleep 1000); sleep 1000`],
    [
      'what closed its output',
      marker => `bash -c 'exec -a ${marker} sleep 1000' </dev/null >/dev/null 2>&1 & disown; sleep 1000`,
    ],
    ['what is stopped', marker => `(exec -a ${marker} sleep 1000) & sleep 0.1; kill -STOP $!; sleep 1000`],
  ]
  for (const [name, command] of escapes) {
    test(`kills ${name}`, async () => {
      const marker = newMarker()
      const running = app.ask('POST', `/v1/sandboxes/${id}/exec`, { command: command(marker), timeoutMs: 500 })
      await until(() => processesNamed(marker).length > 0)
      const { status, body } = await running
      expect(processesNamed(marker)).toEqual([])
      expect({ status, code: body.error.code }).toEqual({ status: 408, code: 'command_timeout' })
    })
  }

  test('kills a tree that forks as fast as it dies', async () => {
    const marker = newMarker()
    const script = `cat > /tmp/spawn <<'END'\n(exec -a ${marker} sleep 0.02)\n/bin/bash /tmp/spawn & disown\nEND\n`
    const { status } = await app.ask('POST', `/v1/sandboxes/${id}/exec`, {
      command: `${script} for i in 1 2 3 4 5; do bash /tmp/spawn & done; sleep 1000`,
      timeoutMs: 300,
    })
    expect(status).toBe(408)
    expect((await exec('pgrep -fc /tmp/spawn')).stdout).toBe('0\n')
    expect(processesNamed(marker)).toEqual([])
  })

  test('answers what was printed until then', async () => {
    const { status, body } = await app.ask('POST', `/v1/sandboxes/${id}/exec`, {
      command: 'echo out; echo err >&2; sleep 1000; echo never',
      timeoutMs: 300,
    })
    expect(status).toBe(408)
    expect(body.error).toEqual({
      code: 'command_timeout',
      message: 'The command did not end within 300 ms and was killed.',
      stdout: 'out\n',
      stderr: 'err\n',
      truncated: false,
    })
    expect(body.message).toBe(body.error.message)
  })

  test('of one command leaves others, and what earlier ones left in the background', async () => {
    const marker = newMarker()
    await exec(`(exec -a ${marker} sleep 1000) >/dev/null 2>&1 &`)
    const other = exec('sleep 0.6; echo other')
    await exec('sleep 1000', { timeoutMs: 200 })
    expect(await other).toMatchObject({ stdout: 'other\n', exitCode: 0 })
    expect(processesNamed(marker)).toHaveLength(1)
    await exec(`pkill -f ${marker}`)
  })

  test('does not come for a command that was in time', async () => {
    expect(await exec('echo quick', { timeoutMs: 600_000 })).toMatchObject({ stdout: 'quick\n' })
  })
})

describe('the background', () => {
  test('a server started in one exec is reached from the next on localhost', async () => {
    await exec('mkdir -p /srv/www && cd /srv/www && echo hello > index.html')
    await exec('cd /srv/www && python3 -m http.server 8123 --bind 127.0.0.1 >/tmp/log 2>&1 &')
    const get = `python3 -c 'import urllib.request as u; print(u.urlopen("http://localhost:8123").read().decode(), end="")'`
    await until(async () => (await exec(get)).stdout === 'hello\n', 'the server answers')
    await exec('pkill -f http.server')
  })

  for (const [name, command] of [
    ['a child of the shell', 'sleep 1000 & echo started'],
    ['a daemon', 'setsid -f sleep 1000; echo started'],
    ['one that printed', '(echo started; sleep 1000) & sleep 0.2'],
  ] as const) {
    test(`${name} that holds stdout does not hold the answer up`, async () => {
      // What holds it goes on for longer than this test may take.
      expect(await exec(command)).toMatchObject({ stdout: 'started\n', exitCode: 0 })
      await exec('pkill sleep')
    })
  }

  test('one that prints after its command has ended is not blocked or killed by it', async () => {
    await exec('rm -f /tmp/alive; (while :; do echo noise; echo x >> /tmp/alive; sleep 0.01; done) &')
    await until(async () => Number((await exec('wc -l < /tmp/alive')).stdout) > 20, 'it goes on')
    await exec('pkill -f noise; pkill bash; true')
  })
})

describe('many and much', () => {
  test('100 at once all answer their own', async () => {
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, n) => exec(`echo ${n}; echo e${n} >&2; exit ${n}`)),
    )
    expect(results).toEqual(
      Array.from({ length: 100 }, (_, n) => ({ stdout: `${n}\n`, stderr: `e${n}\n`, exitCode: n, truncated: false })),
    )
  })

  test('256 MiB of output is cut at 1 MiB and says so, in bounded memory', async () => {
    await using server = await startServer()
    const sandbox = await server.sandbox()
    await server.exec(sandbox, 'true')
    const grown = await peakGrowth(server.pid, async () => {
      const result = await server.exec(sandbox, 'head -c 268435456 /dev/zero | tr "\\0" x; echo end >&2')
      expect(result).toMatchObject({ stderr: 'end\n', exitCode: 0, truncated: true })
      expect(result.stdout).toBe('x'.repeat(1024 * 1024))
    })
    expect(grown).toBeLessThan(128 * 1024 * 1024)
  })

  test('output of exactly 1 MiB is whole', async () => {
    const result = await exec('head -c 1048576 /dev/zero | tr "\\0" x')
    expect(result.truncated).toBe(false)
    expect(result.stdout.length).toBe(1_048_576)
  })

  test('stdout and stderr are cut each on its own', async () => {
    const result = await exec('head -c 3000000 /dev/zero | tr "\\0" e >&2; echo out')
    expect(result).toMatchObject({ stdout: 'out\n', truncated: true })
    expect(result.stderr.length).toBe(1_048_576)
  })

  test('processes beyond the limit fail inside, and the sandbox stays usable', async () => {
    app.agent('small', { limits: { processes: 20 } })
    const small = await app.sandbox({ agent: 'small' })
    await app.exec(small, 'for i in {1..200}; do sleep 1000 & done 2>/dev/null', { timeoutMs: 1000 })
    await app.exec(small, 'pkill sleep')
    expect(await app.exec(small, 'echo fine')).toMatchObject({ stdout: 'fine\n' })
  })
})

test('a client that goes away takes the whole tree with it', async () => {
  const [marker, abort] = [newMarker(), new AbortController()]
  const running = app.request('POST', `/v1/sandboxes/${id}/exec`, {
    body: { command: `setsid -f bash -c 'exec -a ${marker} sleep 1000'; (exec -a ${marker} sleep 1000)` },
    signal: abort.signal,
  })
  running.catch(() => {})
  await until(() => processesNamed(marker).length === 2)
  abort.abort()
  await until(() => processesNamed(marker).length === 0)
})
