import { runCommand } from '../environment/run-command.ts'
import type { Kit } from './kit.ts'
import type { BackendSubject } from './subject.ts'

/** Tests commands: their streams, and how their whole process trees end. */
export function describeSpawn({ describe, test, expect }: Kit, subject: BackendSubject): void {
  const { shell, sleepers } = subject

  describe('spawn', () => {
    const rows: [string, string, { stdout?: string; stderr?: string; exitCode?: number }][] = [
      ['gives stdout', 'echo out', { stdout: 'out\n' }],
      ['gives stderr', 'echo bad >&2', { stderr: 'bad\n' }],
      ['gives the exit code', 'exit 7', { exitCode: 7 }],
      ['gives 128 and the number for a signal', 'kill -9 $$', { exitCode: 137 }],
      ['takes a here-document', 'cat <<EOF\na b\nEOF', { stdout: 'a b\n' }],
      ['closes stdin', 'cat; echo end', { stdout: 'end\n' }],
      ['works in the home directory', 'pwd', { stdout: '/home/user\n' }],
      ['runs as root of the sandbox', 'id -u', { stdout: '0\n' }],
      [
        'lets a line write to /dev/stdout and /dev/stderr',
        'echo a >/dev/stdout; echo b >/dev/stderr',
        { stdout: 'a\n', stderr: 'b\n' },
      ],
      ['leaves SIGPIPE as it is', 'yes | head -n 1', { stdout: 'y\n' }],
      [
        'has a writable /tmp, /var/tmp and /dev/shm',
        'for d in /tmp /var/tmp /dev/shm; do echo x > $d/x && cat $d/x; done',
        { stdout: 'x\nx\nx\n' },
      ],
    ]
    test.each(rows)('%s', async (_, command, wanted) => {
      expect(await shell(command)).toEqual({ stdout: '', stderr: '', exitCode: 0, truncated: false, ...wanted })
    })

    test('runs a program with its arguments as they are', async () => {
      const { stdout } = await runCommand(subject.environment, { command: ['printf', '%s|', 'a b', '$HOME', ''] })
      expect(stdout).toBe('a b|$HOME||')
    })

    test('adds variables and takes a directory', async () => {
      const result = await shell('echo "$A $PWD"', { cwd: '/tmp', env: { A: 'one two' } })
      expect(result.stdout).toBe('one two /tmp\n')
    })

    test('refuses a directory and a program that are not there', async () => {
      await expect(shell('true', { cwd: '/no/such' })).rejects.toMatchObject({ code: 'invalid_request' })
      await expect(runCommand(subject.environment, { command: ['/no/such'] })).rejects.toMatchObject({
        code: 'invalid_request',
      })
    })

    test('carries a megabyte of any bytes in and out', async () => {
      const bytes = crypto.getRandomValues(new Uint8Array(65_536))
      const child = await subject.environment.spawn({ command: 'cat', stdin: 'pipe' })
      const received = new Response(child.stdout).bytes()
      const writer = child.stdin?.getWriter()
      for (let round = 0; round < 16; round++) await writer?.write(bytes)
      await writer?.close()
      const got = await received
      expect(got.byteLength).toBe(16 * bytes.byteLength)
      expect(Buffer.from(got.subarray(-65_536)).equals(bytes)).toBe(true)
      expect(await child.exited).toEqual({ exitCode: 0 })
    })

    test('loses nothing when its reader begins late: regression', async () => {
      const sizes = Array.from({ length: 10 }, async () => {
        const child = await subject.environment.spawn({ command: 'seq 1000000' })
        await Bun.sleep(200)
        return (await new Response(child.stdout).bytes()).byteLength
      })
      expect(await Promise.all(sizes)).toEqual(Array(10).fill(6_888_896))
    })

    test('waits for a slow reader instead of buffering', async () => {
      const child = await subject.environment.spawn({
        command: 'head -c 50000000 /dev/zero; echo done > /tmp/all-written',
      })
      const reader = child.stdout.getReader()
      await reader.read()
      const { stdout } = await shell('for i in 1 2 3 4 5; do test -e /tmp/all-written && echo yes; sleep 0.02; done')
      expect(stdout).toBe('')
      child.kill()
      await reader.cancel()
      await child.exited
    })

    test('ends although a background process holds the output, which goes on and can still write', async () => {
      const result = await shell('(while :; do echo tick; echo x >> /tmp/ticks; sleep 0.05; done) & echo started')
      expect(result.stdout.startsWith('started\n') || result.stdout.includes('started')).toBe(true)
      const count = async () => Number((await shell('wc -l < /tmp/ticks')).stdout)
      const before = await count()
      const { stdout } = await shell('while [ $(wc -l < /tmp/ticks) -le $N ]; do sleep 0.02; done; echo more', {
        env: { N: String(before + 2) },
      })
      expect(stdout).toBe('more\n')
    })

    const escapes: [string, string][] = [
      ['a child', 'sleep 7101'],
      ['a background child', 'sleep 7101 & sleep 7101'],
      ['a new session', 'setsid sleep 7101 & sleep 7101'],
      ['a double fork', '(setsid sh -c "sleep 7101 & sleep 7101" &) ; sleep 7101'],
      ['an empty environment', 'env -i setsid sleep 7101 & sleep 7101'],
      ['a forking tree', 'f() { sleep 7101 & sleep 0.01; f; }; f'],
    ]
    test.each(escapes)('a timeout kills the whole tree: %s', async (_, command) => {
      await expect(shell(command, { timeoutMs: 300 })).rejects.toMatchObject({ code: 'command_timeout' })
      expect(await sleepers('7101')).toBe(0)
    })

    const hidings: [string, string][] = [
      ['lowers the limit that marks it', 'r.setrlimit(10, (5, 5))'],
      ['lowers the soft limit that marks it', 'r.setrlimit(10, (5, r.getrlimit(10)[1]))'],
      [
        'ends its first thread and goes on in another',
        't.Thread(target=m.sleep, args=(60,)).start(); c.CDLL(None).syscall(c.c_long(60), c.c_long(0))',
      ],
    ]
    test.each(hidings)('a timeout kills a process that %s: regression', async (_, hide) => {
      const word = `hiding${Date.now()}`
      const program = [
        `import ctypes as c, os, resource as r, sys, threading as t, time as m`,
        `try: ${hide}`,
        `except ValueError: pass`,
        `m.sleep(60)`,
      ].join('\n')
      const command = `setsid python3 -c '${program}' ${word} & sleep 60`
      await expect(shell(command, { timeoutMs: 700 })).rejects.toMatchObject({ code: 'command_timeout' })
      const { stdout } = await shell(
        `for p in /proc/[0-9]*; do [ $p != /proc/$$ ] && [ -d $p/task ] && cat $p/task/*/comm $p/task/*/cmdline; done 2>/dev/null | tr '\\0' ' '`,
      )
      expect(stdout).not.toContain('python3')
    })

    test('an abort kills the tree and rejects with its reason when it is dead', async () => {
      const abort = new AbortController()
      const reason = new Error('enough')
      const running = shell('echo ready; setsid sleep 7102 & sleep 7102', {
        signal: abort.signal,
        onOutput: () => abort.abort(reason),
      })
      await expect(running).rejects.toBe(reason)
      expect(await sleepers('7102')).toBe(0)
    })

    test('a fork bomb spares the environment, and dies with its timeout', async () => {
      const bomb = shell('bomb() { bomb | bomb & }; bomb; sleep 7109', { timeoutMs: 1000 })
      await expect(bomb).rejects.toMatchObject({ code: 'command_timeout' })
      expect((await shell('echo alive')).stdout).toBe('alive\n')
      expect(await sleepers('7109')).toBe(0)
    })

    test('a kill spares what other commands run', async () => {
      const other = await subject.environment.spawn({ command: 'sleep 7103' })
      await expect(shell('sleep 7104', { timeoutMs: 100 })).rejects.toMatchObject({ code: 'command_timeout' })
      expect(await sleepers('7103')).toBe(1)
      other.kill('SIGTERM')
      expect(await other.exited).toEqual({ exitCode: 143, signal: 'SIGTERM' })
    })

    test('runs a hundred commands at once', async () => {
      const results = await Promise.all(Array.from({ length: 100 }, (_, index) => shell(`echo ${index}`)))
      expect(results.map(({ stdout }) => stdout.trim())).toEqual(results.map((_, index) => String(index)))
    })

    test('leaves no zombie', async () => {
      await shell('(sleep 0.05 &) ; (true &)')
      const { stdout } = await shell(
        'for i in $(seq 100); do grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null || { echo none; break; }; sleep 0.02; done | tail -n 1',
      )
      expect(stdout).toBe('none\n')
    })
  })
}
