import { keepSpawned } from '../environment/server-side-processes.ts'
import type { Environment, EnvironmentProcesses } from '../plugin-api/index.ts'
import type { Kit } from './kit.ts'
import type { BackendSubject } from './subject.ts'
import { until } from './until.ts'

/** Reads the output of a process up to its end, each stream separately. */
async function readOutput(processes: EnvironmentProcesses, pid: number, from = 0) {
  const seen = { stdout: '', stderr: '', first: -1 }
  for (let offset = from; ; ) {
    const { offset: at, pieces, exit } = await processes.read(pid, offset, { wait: true })
    if (seen.first < 0) seen.first = at
    offset = at
    for (const { stream, bytes } of pieces) {
      seen[stream] += Buffer.from(bytes).toString('latin1')
      offset += bytes.byteLength
    }
    if (exit) return { ...seen, ...exit, end: offset }
  }
}

export function describeProcesses({ describe, test, expect }: Kit, subject: BackendSubject): void {
  describe('a terminal', () => {
    const size = { columns: 90, rows: 30 }
    const inTerminal = async (command: string, keys = '') => {
      const child = await subject.environment.spawn({ command, pty: size })
      const writer = child.stdin?.getWriter()
      await writer?.write(Buffer.from(keys))
      const shown = await new Response(child.stdout).text()
      return { shown, ...(await child.exited) }
    }

    const rows: [string, string, string, RegExp, number][] = [
      ['is one, of its size', 'test -t 0 -a -t 1 -a -t 2 && stty size', '', /^30 90\r\n$/, 0],
      ['is the one that /dev/tty means', 'echo seen >/dev/tty', '', /^seen\r\n$/, 0],
      ['names itself', 'echo $TERM', '', /^xterm-256color\r\n$/, 0],
      ['has a keyboard', 'read -r line; echo "got $line"', 'word\n', /got word\r\n$/, 0],
      ['gives the exit code', 'exit 7', '', /^$/, 7],
      ['takes Ctrl-D as the end', 'cat; echo end', '\x04', /end\r\n$/, 0],
      ['gives all that was printed', 'seq 20000 | tail -n 3', '', /^19998\r\n19999\r\n20000\r\n$/, 0],
    ]
    test.each(rows)('%s', async (_, command, keys, shown, exitCode) => {
      const result = await inTerminal(command, keys)
      expect(result.shown).toMatch(shown)
      expect(result.exitCode).toBe(exitCode)
    })

    test('interrupts the job in front by Ctrl-C, and not the shell', async () => {
      const child = await subject.environment.spawn({ command: ['/bin/sh', '-i'], pty: size })
      const writer = child.stdin?.getWriter()
      const shown = new Response(child.stdout).text()
      await writer?.write(Buffer.from('sleep 7111\r'))
      await until(async () => (await subject.sleepers('7111')) === 1)
      await writer?.write(Buffer.from('\x03'))
      await until(async () => (await subject.sleepers('7111')) === 0)
      await writer?.write(Buffer.from('exit 5\r'))
      expect((await child.exited).exitCode).toBe(5)
      expect(await shown).toContain('^C')
    })

    test('tells its programs when it is resized', async () => {
      const command = `trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.02; done`
      const child = await subject.environment.spawn({ command, pty: size })
      let shown = ''
      for await (const bytes of child.stdout) {
        shown += Buffer.from(bytes).toString()
        if (shown === 'ready\r\n') child.resize?.({ columns: 100, rows: 50 })
      }
      expect(shown).toBe('ready\r\n50 100\r\n')
    })

    test('dies with its whole tree', async () => {
      const child = await subject.environment.spawn({ command: 'setsid sleep 7112 & sleep 7112', pty: size })
      await until(async () => (await subject.sleepers('7112')) === 2)
      child.kill()
      expect((await child.exited).exitCode).toBe(137)
      expect(await subject.sleepers('7112')).toBe(0)
    })

    test('waits for a slow reader', async () => {
      const child = await subject.environment.spawn({ command: 'seq 1000000; echo done > /tmp/all-shown', pty: size })
      const reader = child.stdout.getReader()
      await reader.read()
      await subject.shell('sleep 0.3')
      expect((await subject.shell('ls /tmp/all-shown')).exitCode).toBeGreaterThan(0)
      child.kill()
      await reader.cancel()
      await child.exited
    })
  })

  const kinds: [string, (environment: Environment) => EnvironmentProcesses][] = [
    ['processes', environment => environment.processes ?? keepSpawned(environment)],
    ['processes that the server keeps over spawn', keepSpawned],
  ]
  for (const [name, tableOf] of kinds)
    describe(name, () => {
      test('keep what they printed, both streams in their order, and how they ended', async () => {
        const processes = tableOf(subject.environment)
        const { pid } = await processes.start({
          command: 'printf a; sleep 0.1; printf b >&2; sleep 0.1; printf "\\377"; exit 3',
          name: 'letters',
        })
        expect(await readOutput(processes, pid)).toEqual({
          stdout: 'a\xff',
          stderr: 'b',
          first: 0,
          end: 3,
          exitCode: 3,
        })
        expect(await readOutput(processes, pid, 1)).toMatchObject({ stdout: '\xff', stderr: 'b', first: 1 })
        expect((await processes.read(pid, 0, { wait: false })).pieces.map(({ stream }) => stream)).toEqual([
          'stdout',
          'stderr',
          'stdout',
        ])
        expect(await processes.get(pid)).toMatchObject({
          name: 'letters',
          stdin: false,
          exit: { exitCode: 3 },
          outputStart: 0,
          outputEnd: 3,
        })
        await processes.remove(pid)
        await expect(processes.get(pid)).rejects.toMatchObject({ code: 'process_not_found' })
      })

      test('are held up by no reader, and keep the last of what they printed', async () => {
        const processes = tableOf(subject.environment)
        const { pid } = await processes.start({ command: 'head -c 20000000 /dev/zero; echo; printf last' })
        await until(async () => (await processes.get(pid)).exit !== undefined)
        const { outputStart, outputEnd } = await processes.get(pid)
        expect(outputEnd).toBe(20_000_005)
        expect(outputEnd - outputStart).toBeLessThan(2 * 1024 * 1024)
        const { first, stdout } = await readOutput(processes, pid)
        expect([first, stdout.slice(-6)]).toEqual([outputStart, '\0\nlast'])
        await processes.remove(pid)
      })

      test('take input to its end, signals, and refuse both once they have ended', async () => {
        const processes = tableOf(subject.environment)
        const { pid } = await processes.start({ command: 'cat', stdin: 'pipe' })
        await processes.write(pid, Buffer.from('one '))
        await processes.write(pid, Buffer.from('two'))
        await processes.closeStdin(pid)
        expect((await readOutput(processes, pid)).stdout).toBe('one two')
        await expect(processes.write(pid, Buffer.from('x'))).rejects.toMatchObject({ code: 'conflict' })
        await expect(processes.signal(pid, 'SIGTERM')).rejects.toMatchObject({ code: 'conflict' })
        const other = await processes.start({
          command: `trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.02; done`,
        })
        await processes.read(other.pid, 0, { wait: true })
        await processes.signal(other.pid, 'SIGTERM')
        expect(await readOutput(processes, other.pid)).toMatchObject({ stdout: 'up\nbye\n', exitCode: 4 })
        await expect(processes.write(other.pid, Buffer.from('x'))).rejects.toMatchObject({ code: 'conflict' })
      })

      test('have terminals', async () => {
        const processes = tableOf(subject.environment)
        const { pid } = await processes.start({
          command: 'stty size; read -r x; stty size',
          pty: { columns: 90, rows: 30 },
        })
        await processes.read(pid, 0, { wait: true })
        await processes.resize(pid, { columns: 91, rows: 31 })
        await processes.write(pid, Buffer.from('\r'))
        expect((await readOutput(processes, pid)).stdout).toBe('30 90\r\n\r\n31 91\r\n')
      })

      test('are gone with all their children once they are removed', async () => {
        const processes = tableOf(subject.environment)
        const { pid } = await processes.start({ command: 'setsid sleep 7113 & sleep 7113' })
        await until(async () => (await subject.sleepers('7113')) === 2)
        await processes.remove(pid)
        expect(await subject.sleepers('7113')).toBe(0)
        await expect(processes.remove(pid)).rejects.toMatchObject({ code: 'process_not_found' })
      })

      test('refuse a directory that is not there', async () => {
        const starting = tableOf(subject.environment).start({ command: 'true', cwd: '/no/such' })
        await expect(starting).rejects.toMatchObject({ code: 'invalid_request' })
      })
    })

  describe('processes of a backend that keeps them', () => {
    test('go on while no server is there', async () => {
      const { processes, id } = subject.environment
      if (!processes) return
      const command = 'echo before; until [ -e /tmp/go-on ]; do sleep 0.02; done; echo after'
      const { pid } = await processes.start({ command })
      await subject.backend.close()
      subject.backend = await subject.open()
      const again = await subject.backend.open(id)
      if (!again?.processes) throw new Error('the first environment is lost')
      subject.environment = again
      expect((await again.processes.get(pid)).exit).toBeUndefined()
      await subject.shell('touch /tmp/go-on')
      expect(await readOutput(again.processes, pid)).toMatchObject({ stdout: 'before\nafter\n', exitCode: 0 })
    })
  })
}
