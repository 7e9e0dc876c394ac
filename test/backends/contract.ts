import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Duplex } from 'node:stream'
import { newId } from '../../src/db/id.ts'
import { runShell } from '../../src/guest/shell.ts'
import type { Backend, Environment, PluginContext } from '../../src/plugin.ts'

/** What every backend promises. It runs unchanged on each: a gap found in one becomes a line here. */
export function describeBackend(
  name: string,
  openBackend: (serveProxy: PluginContext['serveProxy']) => Promise<Backend>,
): void {
  describe(`backend ${name}`, () => {
    let backend: Backend
    let environment: Environment
    /** Says whose connection it is, then gives back what comes. */
    const echoProxy = (environmentId: string, socket: Duplex) => {
      socket.on('error', () => {})
      socket.write(`${environmentId} `)
      socket.pipe(socket)
    }
    let serveProxy: PluginContext['serveProxy'] = echoProxy
    const open = () => openBackend((id, socket) => serveProxy(id, socket))
    const limits = { memoryMb: 512, processes: 200, cpus: 2, diskMb: 512 }
    const create = () => backend.create({ id: newId('env'), limits })
    const shell = (command: string, options: Partial<Parameters<typeof runShell>[1]> = {}) =>
      runShell(environment, { command, timeoutMs: 20_000, ...options })
    /** How many `sleep MARK` are alive inside. */
    const sleepers = async (mark: string, inside = environment) => {
      const command = `for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep -c '^sleep ${mark} $'`
      return Number((await runShell(inside, { command })).stdout)
    }

    beforeAll(async () => {
      backend = await open()
      environment = await create()
    }, 60_000)

    afterAll(async () => {
      for (const id of await backend.list()) await (await backend.open(id))?.destroy()
      await backend.close()
    }, 60_000)

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
        const { stdout } = await runShell(environment, { command: ['printf', '%s|', 'a b', '$HOME', ''] })
        expect(stdout).toBe('a b|$HOME||')
      })

      test('adds variables and takes a directory', async () => {
        const result = await shell('echo "$A $PWD"', { cwd: '/tmp', env: { A: 'one two' } })
        expect(result.stdout).toBe('one two /tmp\n')
      })

      test('refuses a directory and a program that are not there', async () => {
        await expect(shell('true', { cwd: '/no/such' })).rejects.toMatchObject({ code: 'invalid_request' })
        await expect(runShell(environment, { command: ['/no/such'] })).rejects.toMatchObject({
          code: 'invalid_request',
        })
      })

      test('carries a megabyte of any bytes in and out', async () => {
        const bytes = crypto.getRandomValues(new Uint8Array(65_536))
        const child = await environment.spawn({ command: 'cat', stdin: 'pipe' })
        const received = new Response(child.stdout).bytes()
        const writer = child.stdin?.getWriter()
        for (let round = 0; round < 16; round++) await writer?.write(bytes)
        await writer?.close()
        const got = await received
        expect(got.byteLength).toBe(16 * bytes.byteLength)
        expect(Buffer.from(got.subarray(-65_536)).equals(bytes)).toBe(true)
        expect(await child.exited).toEqual({ exitCode: 0 })
      })

      test('waits for a slow reader instead of buffering', async () => {
        const child = await environment.spawn({ command: 'head -c 50000000 /dev/zero; echo done > /tmp/all-written' })
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
        const other = await environment.spawn({ command: 'sleep 7103' })
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

    describe('files', () => {
      test('are written with their parents and read back', async () => {
        expect(await environment.files.write('/srv/deep/er/a.txt', Buffer.from('hällo'))).toBe(6)
        const { size, body } = await environment.files.read('/srv/deep/er/a.txt')
        expect([size, await new Response(body).text()]).toEqual([6, 'hällo'])
      })

      test('of 20 MB go both ways as streams', async () => {
        const piece = new Uint8Array(1_000_000).fill(5)
        let pieces = 0
        const body = new ReadableStream<Uint8Array>({
          pull: controller => (pieces++ < 20 ? controller.enqueue(piece) : controller.close()),
        })
        expect(await environment.files.write('/tmp/large', body)).toBe(20_000_000)
        const file = await environment.files.read('/tmp/large')
        let read = 0
        for await (const chunk of file.body) read += chunk.byteLength
        expect([file.size, read]).toEqual([20_000_000, 20_000_000])
      })

      test('that end at a full disk end their sender too: regression', async () => {
        let sent = 0
        const endless = new ReadableStream<Uint8Array>({
          pull(controller) {
            sent += 1
            controller.enqueue(new Uint8Array(1_000_000))
          },
        })
        await expect(environment.files.write('/tmp/endless', endless)).rejects.toMatchObject({
          code: 'invalid_request',
        })
        expect(sent).toBeLessThan(700)
        await environment.files.remove('/tmp/endless')
      })

      test('keep their mode when they are replaced', async () => {
        await shell('echo a > /tmp/run.sh; chmod 755 /tmp/run.sh')
        await environment.files.write('/tmp/run.sh', Buffer.from('#!/bin/sh\necho ran\n'))
        expect((await shell('/tmp/run.sh')).stdout).toBe('ran\n')
      })

      test('that are no regular files are refused at once', async () => {
        await shell('mkfifo /tmp/fifo; mkdir /tmp/directory; ln -s /tmp/nowhere /tmp/dangling')
        const refused = (path: string) =>
          environment.files.read(path).then(
            () => 'read',
            error => error.code,
          )
        const paths = [
          '/tmp/fifo',
          '/tmp/directory',
          '/dev/zero',
          '/dev/tty',
          '/tmp/dangling',
          '/tmp/none',
          '/tmp/fifo/x',
        ]
        expect(await Promise.all(paths.map(refused))).toEqual([
          ...Array<string>(4).fill('invalid_request'),
          ...Array<string>(3).fill('file_not_found'),
        ])
        await expect(environment.files.write('/tmp/fifo', Buffer.from('x'))).rejects.toMatchObject({
          code: 'invalid_request',
        })
      })

      test('are seen through links only inside: regression', async () => {
        await environment.files.write('/etc/passwd-own', Buffer.from('inside'))
        await shell(
          'ln -sf /etc/passwd-own /tmp/link; ln -sf ../../../../../../etc/passwd-own /tmp/up; ln -sfn / /tmp/root',
        )
        for (const path of ['/tmp/link', '/tmp/up', '/tmp/root/etc/passwd-own']) {
          expect(await new Response((await environment.files.read(path)).body).text()).toBe('inside')
        }
      })

      test('are listed, described, renamed and removed', async () => {
        const { files } = environment
        expect([await files.makeDirectory('/opt/a/b'), await files.makeDirectory('/opt/a/b')]).toEqual([true, false])
        await files.write('/opt/a/f', Buffer.from('123'))
        await shell('ln -s f /opt/a/l')
        const names = async (depth: number) => (await files.list('/opt', depth)).map(({ path }) => path)
        expect(await names(1)).toEqual(['/opt/a'])
        expect(await names(2)).toEqual(['/opt/a', '/opt/a/b', '/opt/a/f', '/opt/a/l'])
        expect(await files.info('/opt/a/f')).toMatchObject({
          name: 'f',
          type: 'file',
          size: 3,
          mode: 0o644,
          permissions: '-rw-r--r--',
          owner: 'root',
        })
        expect(await files.info('/opt/a/l')).toMatchObject({ type: 'file', symlinkTarget: 'f' })
        await files.rename('/opt/a/f', '/opt/new/g')
        expect([await files.info('/opt/a/f'), (await files.info('/opt/new/g'))?.size]).toEqual([undefined, 3])
        await files.remove('/opt/a')
        await expect(files.remove('/opt/a')).rejects.toMatchObject({ code: 'file_not_found' })
        await expect(files.list('/opt/new/g')).rejects.toMatchObject({ code: 'invalid_request' })
      })
    })

    describe('connect', () => {
      test('reaches a server that an earlier command left behind', async () => {
        await shell(
          'mkdir -p /tmp/www && cd /tmp/www && echo served > index.html && { python3 -m http.server 8123 >/dev/null 2>&1 & }',
        )
        await shell(
          'for i in $(seq 200); do (exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null && exit; sleep 0.02; done; exit 1',
        )
        const socket = await environment.connect(8123)
        socket.end('GET / HTTP/1.0\r\n\r\n')
        let answer = ''
        for await (const chunk of socket) answer += chunk
        expect(answer).toEndWith('served\n')
      })

      test('rejects when nothing listens', async () => {
        await expect(environment.connect(8124)).rejects.toMatchObject({ code: 'sandbox_unavailable' })
      })
    })

    describe('the proxy', () => {
      const ask = 'exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; read -r line <&3; echo "$line"'

      test('is reached at its address inside, by every environment as itself', async () => {
        const other = await create()
        try {
          const lines = [await shell(ask), await runShell(other, { command: ask })].map(({ stdout }) => stdout)
          expect(lines).toEqual([`${environment.id} hello\n`, `${other.id} hello\n`])
        } finally {
          await other.destroy()
        }
      })

      test('is named to every process, and an own name for it wins', async () => {
        const command = 'echo $HTTP_PROXY $https_proxy $NO_PROXY $NODE_USE_ENV_PROXY'
        const env = { https_proxy: 'http://own:1' }
        expect((await shell(command)).stdout).toBe(
          'http://127.0.0.1:3128 http://127.0.0.1:3128 localhost,127.0.0.1,::1 1\n',
        )
        expect((await shell(command, { env })).stdout).toBe(
          'http://127.0.0.1:3128 http://own:1 localhost,127.0.0.1,::1 1\n',
        )
      })

      test('is told when a process has ended its side, and answers still', async () => {
        serveProxy = (_, socket) => {
          let text = ''
          socket.on('data', chunk => (text += chunk)).on('end', () => socket.end(`got ${text}`))
        }
        try {
          const script = [
            'import socket; s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(b"all")',
            's.shutdown(socket.SHUT_WR); print(s.makefile().read())',
          ].join('\n')
          expect((await runShell(environment, { command: ['python3', '-c', script] })).stdout).toBe('got all\n')
        } finally {
          serveProxy = echoProxy
        }
      })

      test('is the only way out: regression', async () => {
        const addresses = ['1.1.1.1/53', '10.0.0.1/80', '169.254.169.254/80']
        const tries = addresses.map(each => `(exec 3<>/dev/tcp/${each}) 2>/dev/null && echo ${each}`)
        expect((await shell(`${tries.join('; ')}; cat /proc/net/route | tail -n +2`)).stdout).toBe('')
      })

      test('takes 256 connections at once and more when they are over', async () => {
        const script = [
          'import socket',
          'def say():',
          '  s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(10); s.sendall(b"x\\n"); return s',
          'def heard(s):',
          '  try: return s.makefile().readline().endswith("x\\n")',
          '  except OSError: return False',
          'for _ in range(2):',
          '  all = [say() for _ in range(300)]; print(sum(map(heard, all)))',
          '  for s in all: s.close()',
          '  import time; time.sleep(0.5)',
        ].join('\n')
        const { stdout, stderr } = await runShell(environment, {
          command: ['python3', '-c', script],
          timeoutMs: 20_000,
        })
        expect([stdout, stderr]).toEqual(['256\n256\n', ''])
        expect((await shell(ask)).stdout).toBe(`${environment.id} hello\n`)
      })
    })

    describe('an environment', () => {
      test('is apart from another one', async () => {
        const other = await create()
        try {
          await other.files.write('/tmp/secret', Buffer.from('other'))
          expect((await shell('find / -xdev -name secret -newer /etc/hostname 2>/dev/null')).stdout).toBe('')
          const child = await other.spawn({ command: 'sleep 7105' })
          expect(await sleepers('7105')).toBe(0)
          child.kill()
          await child.exited
        } finally {
          await other.destroy()
        }
      })

      test('keeps files through a pause, and starts again with its next use', async () => {
        const other = await create()
        try {
          await other.files.write('/home/user/kept', Buffer.from('kept'))
          const child = await other.spawn({ command: 'sleep 7106' })
          await other.pause?.()
          await expect(child.exited).rejects.toMatchObject({ code: 'sandbox_unavailable' })
          expect([(await runShell(other, { command: 'cat kept' })).stdout, await sleepers('7106', other)]).toEqual([
            'kept',
            0,
          ])
        } finally {
          await other.destroy()
        }
      })

      test('has the proxy again for what runs in it once another instance of the backend is there', async () => {
        const made = await create()
        await runShell(made, {
          command: 'while :; do (exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null; sleep 0.05; done &',
        })
        await backend.close()
        const reached = Promise.withResolvers<string>()
        serveProxy = (id, socket) => {
          reached.resolve(id)
          socket.destroy()
        }
        try {
          backend = await open()
          await backend.list()
          expect(await reached.promise).toBe(made.id)
        } finally {
          serveProxy = echoProxy
          await (await backend.open(made.id))?.destroy()
        }
        const again = await backend.open(environment.id)
        if (!again) throw new Error('the first environment is lost')
        environment = again
      })

      test('is found by another instance of the backend, with what runs in it', async () => {
        const made = await create()
        await runShell(made, { command: 'echo here > /tmp/f; sleep 7107 &' })
        await backend.close()
        backend = await open()
        expect(await backend.list()).toContain(made.id)
        const found = await backend.open(made.id)
        if (!found) throw new Error('not found')
        expect([(await runShell(found, { command: 'cat /tmp/f' })).stdout, await sleepers('7107', found)]).toEqual([
          'here\n',
          1,
        ])
        await found.destroy()
        const again = await backend.open(environment.id)
        if (!again) throw new Error('the first environment is lost')
        environment = again
      })

      test('is gone when destroy resolves, also a second time', async () => {
        const other = await create()
        const child = await other.spawn({ command: 'sleep 7108' })
        await Promise.all([other.destroy(), other.destroy()])
        await other.destroy()
        await expect(child.exited).rejects.toMatchObject({ code: 'sandbox_unavailable' })
        expect(await backend.open(other.id)).toBeUndefined()
        expect(await backend.list()).not.toContain(other.id)
      })

      test('that never was is not found', async () => {
        expect(await backend.open(newId('env'))).toBeUndefined()
        expect(await backend.open('../../etc')).toBeUndefined()
      })
    })
  })
}
