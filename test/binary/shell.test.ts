import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closeSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openTerminal } from '../agent/terminal.ts'
import { processesNamed } from '../support/leftovers.ts'
import { executable, plainEnvironment, temporaryDirectory, useServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const server = useServer()
const directory = temporaryDirectory()
afterAll(() => rmSync(directory, { recursive: true }))
let id = ''
beforeAll(async () => {
  id = await server.sandbox()
})

const environment = () => ({ THREADBOX_API_KEY: server.key, THREADBOX_URL: server.url })
const processes = async () => (await server.ask('GET', `/v1/sandboxes/${id}/processes`)).body.processes as any[]

/** `threadbox shell` with pipes. */
async function piped(args: string[], input: Uint8Array | 'ignore' = 'ignore') {
  const child = Bun.spawn([executable, 'shell', ...args], {
    env: { ...plainEnvironment, ...environment() },
    stdio: [input, 'pipe', 'pipe'],
  })
  const [stdout, stderr, code] = await Promise.all([child.stdout.bytes(), child.stderr.text(), child.exited])
  return { stdout: Buffer.from(stdout), stderr, code }
}

describe('threadbox shell, in a terminal', () => {
  test('is a login shell with job control, of the terminal’s size, and passes its exit code on', async () => {
    await using screen = openTerminal(['shell', id], environment())
    await screen.shows('#')
    screen.type('stty size; shopt -q login_shell && echo log""in; echo $TERM\r')
    await screen.shows('40 120')
    await screen.shows('login')
    await screen.shows('xterm-256color')
    const nap = `4332.${process.pid}`
    screen.type(`sleep ${nap}\r`)
    await until(() => processesNamed(nap).length > 0)
    screen.type('\x03')
    await until(() => processesNamed(nap).length === 0)
    screen.resize(100, 33)
    // Until its next prompt bash throws away what is typed.
    await screen.shows('^C')
    await screen.shows('#')
    await until(async () => (await processes())[0].pty.columns === 100)
    screen.type('stty size\r')
    await screen.shows('33 100')
    screen.type('exit 7\r')
    expect(await screen.exited).toBe(7)
    expect(await processes()).toEqual([])
  })

  test('runs a command, whose own flags are not ours', async () => {
    await using screen = openTerminal(
      ['shell', id, '--', 'sh', '-c', 'test -t 0 && echo "$0"; exit 3', '--help'],
      environment(),
    )
    await screen.shows('--help')
    expect(await screen.exited).toBe(3)
  })

  test('shows all of a long output', async () => {
    await using screen = openTerminal(['shell', id, '--', 'seq', '300000'], environment())
    expect(await screen.exited).toBe(0)
    const lines = screen.raw.trimEnd().split('\r\n')
    expect([lines.length, lines.at(-1)]).toEqual([300_000, '300000'])
  })

  for (const [name, end, code] of [
    ['a signal', () => void process.kill(processesNamed(id)[0]!, 'SIGTERM'), 143],
    ['a lost server', () => server.kill(), 1],
  ] as const) {
    test(`leaves the terminal as it was after ${name}`, async () => {
      const look = (file: string) => `stty -a > ${directory}/${file}`
      const script = `${look('before')}; "$0" shell ${id}; echo "code $?"; ${look('after')}`
      await using screen = openTerminal([], environment(), ['bash', '-c', script])
      await screen.shows('#')
      await end()
      await screen.shows(`code ${code}`)
      expect(await screen.exited).toBe(0)
      const [before = '', after] = await Promise.all(
        ['before', 'after'].map(file => Bun.file(join(directory, file)).text()),
      )
      expect([before.includes(' icanon'), after]).toEqual([true, before])
      if (code === 1) await server.start()
      else await until(async () => (await processes()).length === 0)
    })
  }

  test('takes its process with it when it is killed', async () => {
    const nap = `4333.${process.pid}`
    {
      await using screen = openTerminal(['shell', id, '--', 'sh', '-c', 'echo up; sleep "$0"', nap], environment())
      await screen.shows('up')
      await until(() => processesNamed(nap).length > 2)
    }
    await until(() => processesNamed(nap).length === 0)
  })
})

describe('threadbox shell, with pipes', () => {
  test('passes any bytes both ways, and the exit code', async () => {
    const bytes = crypto.getRandomValues(new Uint8Array(3_000_000))
    const { stdout, stderr, code } = await piped([id, '--', 'sh', '-c', 'cat; echo done >&2; exit 4'], bytes)
    expect([stdout.equals(bytes), stderr, code]).toEqual([true, 'done\n', 4])
  })

  test('ends although its input does not', async () => {
    const fifo = join(directory, 'fifo')
    Bun.spawnSync(['mkfifo', fifo])
    const held = openSync(fifo, 'r+')
    const child = Bun.spawn([executable, 'shell', id, '--', 'echo', 'out'], {
      env: { ...plainEnvironment, ...environment() },
      stdio: [held, 'pipe', 'pipe'],
    })
    expect([await child.stdout.text(), await child.exited]).toEqual(['out\n', 0])
    closeSync(held)
  })

  test('ends without a word when its reader has seen enough', async () => {
    const script = `set -o pipefail; "$0" shell ${id} -- yes | head -n 1; echo $?`
    const child = Bun.spawn(['bash', '-c', script, executable], {
      env: { ...plainEnvironment, ...environment() },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    expect([await child.stdout.text(), await child.stderr.text()]).toEqual(['y\n141\n', ''])
    expect((await processes()).map(each => each.command)).not.toContain('yes')
  })

  test('runs what comes as a script', async () => {
    const { stdout, code } = await piped([id], Buffer.from('echo from; echo stdin; exit 2'))
    expect([stdout.toString(), code]).toEqual(['from\nstdin\n', 2])
  })

  const mistakes: [string, string[], number, RegExp][] = [
    ['no sandbox', [], 2, /usage: threadbox shell/],
    ['an unknown flag', ['--colour', 'x'], 2, /--colour: no such flag/],
    ['a sandbox that is not there', ['none'], 1, /^threadbox: There is no such sandbox\.\n$/],
    ['a program that is not there', ['ID', '--', '/no/such'], 1, /could not be started/],
    ['a server that is not there', ['ID', '--url', 'http://127.0.0.1:1'], 1, /no server answers/],
  ]
  test.each(mistakes)('says so for %s', async (_, args, code, told) => {
    const result = await piped(args.map(arg => (arg === 'ID' ? id : arg)))
    expect(result.code).toBe(code)
    expect(result.stderr).toMatch(told)
  })
})
