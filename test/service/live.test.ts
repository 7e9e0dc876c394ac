import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, executable, patiently, temporaryDirectory } from '../support/server.ts'

patiently()

/**
 * A machine on which systemd runs, for one command: a mount namespace with a /etc and a /usr/local/bin of its own, and a
 * systemctl and a journalctl that say what a test wrote for them.
 */
let machine = ''
const at = (name: string) => join(machine, name)

beforeAll(() => {
  machine = temporaryDirectory()
  for (const name of ['etc', 'bin', 'programs', 'data']) mkdirSync(at(name))
  const program = (name: string, text: string) => {
    writeFileSync(at(`programs/${name}`), `#!/bin/sh\n${text}`)
    chmodSync(at(`programs/${name}`), 0o755)
  }
  program(
    'systemctl',
    `echo "$*" >> ${at('asked')}\ncase "$1" in is-system-running) echo running;; show) cat ${at('show')};; esac\n`,
  )
  program('journalctl', `cat ${at('journal')}\n`)
})
afterAll(() => rmSync(machine, { recursive: true }))

beforeEach(() => {
  for (const name of ['etc', 'bin']) rmSync(at(name), { recursive: true })
  for (const name of ['etc/systemd/system', 'bin']) mkdirSync(at(name), { recursive: true })
  writeFileSync(at('asked'), '')
  writeFileSync(at('show'), 'ActiveState=active\nNRestarts=0\n')
  writeFileSync(at('journal'), '')
})

const install = (args: readonly string[], env = {}) =>
  command(['service', 'install', ...args], {
    command: [
      ...['unshare', '--mount', 'sh', '-c'],
      `mount --bind ${at('etc')} /etc && mount --bind ${at('bin')} /usr/local/bin && exec "$0" "$@"`,
      executable,
    ],
    env: { PATH: `${at('programs')}:/usr/sbin:/usr/bin:/sbin:/bin`, THREADBOX_DATA_DIR: at('data'), ...env },
  })
const asked = () => readFileSync(at('asked'), 'utf8')
const isWritten = () =>
  ['etc/threadbox', 'etc/systemd/system/threadbox.service', 'bin/threadbox'].some(name => existsSync(at(name)))

/** Nothing listens there. */
const settings = () => ['--port', '9', '--data-dir', at('data')]

const refused: [string, () => string[], number, RegExp][] = [
  [
    'a model without its key',
    () => ['--model', 'anthropic/x'],
    2,
    /--model: the provider anthropic is not set up here; set ANTHROPIC_API_KEY/,
  ],
  ['agents that are not there', () => ['--agents', '/none'], 2, /--agents: \/none: no such file/],
  ['a backend that is not there', () => ['--backend', 'cloud'], 2, /--backend: there is no backend cloud/],
  [
    'what doctor finds missing',
    () => ['--nsjail-path', '/none'],
    1,
    /the server would not start here\nFAILED +nsjail: /,
  ],
]
test.each(refused)('before anything is written it refuses %s', async (_, flags, code, said) => {
  const result = await install([...settings(), ...flags()])
  expect([result.code, result.stdout]).toEqual([code, ''])
  expect(result.stderr).toMatch(said)
  expect([isWritten(), asked()]).toEqual([false, 'is-system-running\n'])
  expect(existsSync(at('data/threadbox.db'))).toBe(false)
})

test('a unit that has failed is waited for no longer, and its last words are told', async () => {
  writeFileSync(at('show'), 'ActiveState=failed\nNRestarts=0\n')
  writeFileSync(at('journal'), 'Started.\nthreadbox: --port: is taken\nthreadbox.service: Main process exited\n')
  const { code, stderr } = await install(settings())
  expect([code, stderr]).toEqual([
    1,
    'threadbox: service: the server does not start: threadbox: --port: is taken\nsee: journalctl -u threadbox\n',
  ])
  expect(asked()).toContain('--no-block start threadbox')
})

test('one that starts over and over is not waited for either', async () => {
  writeFileSync(at('show'), 'ActiveState=activating\nNRestarts=3\n')
  const { code, stderr } = await install(settings())
  expect([code, stderr]).toEqual([1, 'threadbox: service: the server does not start\nsee: journalctl -u threadbox\n'])
})

test('the key of the model is taken from this command’s variables, and told', async () => {
  writeFileSync(at('show'), 'ActiveState=failed\nNRestarts=0\n')
  const { stdout } = await install([...settings(), '--model', 'anthropic/x'], { ANTHROPIC_API_KEY: 'sk-ant-0123456' })
  expect(stdout).toContain('ANTHROPIC_API_KEY, as it is set for this command, is kept in /etc/threadbox/environment\n')
  expect(stdout).not.toContain('sk-ant')
  expect(readFileSync(at('etc/threadbox/environment'), 'utf8')).toContain('ANTHROPIC_API_KEY="sk-ant-0123456"\n')
})

test('the unit does not start again after a wrong setting', async () => {
  writeFileSync(at('show'), 'ActiveState=failed\nNRestarts=0\n')
  await install(settings())
  expect(readFileSync(at('etc/systemd/system/threadbox.service'), 'utf8')).toContain('\nRestartPreventExitStatus=2\n')
})

test('one that answers is told with its address', async () => {
  using server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json({ status: 'ok' }) })
  const { code, stdout } = await install(['--port', `${server.port}`, '--data-dir', at('data')])
  expect([code, stdout]).toEqual([0, expect.stringContaining(`threadbox answers at ${server.url.origin}.`)])
})
