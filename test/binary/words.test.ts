import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { command, executable, patiently, temporaryDirectory } from '../support/server.ts'

patiently()

const { version } = packageJson

const commands = [
  'serve',
  'doctor',
  'keys create',
  'agents apply',
  'base add',
  'run',
  'exec',
  'service install',
  'plugin test',
  'version',
]
const others = ['licenses', 'help', 'guest']
const flags = ['backend', 'host', 'port', 'data-dir', 'agents', 'nsjail-path', 'api-key', 'memory-mb', 'grace-ms']

test.each(['', 'help', '--help', '-h', 'serve --help', 'keys create -h'])('help: threadbox %s', async line => {
  const { code, stdout, stderr } = await command(line.split(' ').filter(Boolean))
  expect([code, stderr]).toEqual([0, ''])
  for (const words of [...commands, ...others, ...flags.map(flag => `--${flag} `)])
    expect(stdout).toContain(`\n  ${words}`)
})

test.each(['version', '--version'])('%s', async word => {
  expect(await command([word])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
})

test('licenses names what is embedded, with the texts', async () => {
  const { code, stdout } = await command(['licenses'])
  expect(code).toBe(0)
  for (const name of ['Bun', 'nsjail', 'elysia', 'typebox', 'Apache License', 'GNU LIBRARY GENERAL PUBLIC LICENSE'])
    expect(stdout.toLowerCase()).toContain(name.toLowerCase())
})

test('a reader of the licenses who has seen enough is no error', async () => {
  const script = '"$0" licenses | head -n 1; exit $PIPESTATUS'
  const { code, stderr } = await command([], { command: ['bash', '-c', script, executable] })
  expect([code, stderr]).toEqual([0, ''])
})

test('every problem of a command line is told at once, each with its setting, and no value', async () => {
  const directory = temporaryDirectory()
  const file = join(directory, 'config.json')
  writeFileSync(file, JSON.stringify({ 'idle-ms': 'soon', colour: 'red', cpus: 2 }))
  const { code, stdout, stderr } = await command(
    ['serve', '--config', file, '--port', '70000', 'stray', '--memory-mb=-1', '--nope', '1', '--data-dir'],
    { env: { THREADBOX_API_KEY: 'topsecret', THREADBOX_CPUS: 'many', THREADBOX_PORT: '1' } },
  )
  rmSync(directory, { recursive: true })
  expect([code, stdout]).toEqual([2, ''])
  expect(
    stderr
      .replace(/^threadbox: /, '')
      .trimEnd()
      .split('\n')
      .sort(),
  ).toEqual(
    [
      `"colour" in ${file}: no such setting`,
      `"idle-ms" in ${file}: must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
      '--data-dir: wants a value',
      `--memory-mb: must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
      '--nope: no such setting',
      '--port: must be a whole number from 0 to 65535',
      'stray: not a flag',
      'THREADBOX_API_KEY: must be 16 or more characters without spaces',
      'THREADBOX_CPUS: must be a number from 0 to 1024',
    ].sort(),
  )
})

test.each([
  { args: ['dance'], says: 'no such command: dance' },
  { args: ['serve', '--backend', 'cloud'], says: '--backend: there is no backend cloud' },
  { args: ['doctor', '--backend', 'cloud'], says: '--backend: there is no backend cloud' },
  { args: ['doctor', '--bogus', '1'], says: '--bogus: no such setting' },
  { args: ['keys'], says: 'usage: threadbox keys create' },
  { args: ['keys', 'revoke'], says: 'usage: threadbox keys create' },
  { args: ['keys', 'revoke', 'key_none'], says: 'There is no valid key key_none.' },
  { args: ['keys', 'create', '--expires-in', 'soon'], says: '--expires-in wants days, like 30d' },
  { args: ['agents'], says: 'usage: threadbox agents apply' },
  { args: ['agents', 'apply'], says: 'usage: threadbox agents apply' },
  { args: ['agents', 'show', 'nobody'], says: 'There is no agent nobody.' },
  { args: ['agents', 'remove', 'nobody'], says: 'There is no agent nobody.' },
])('a mistake is told in one line with exit code 2: $args', async ({ args, says }) => {
  const directory = temporaryDirectory()
  const { code, stdout, stderr } = await command(args, { env: { THREADBOX_DATA_DIR: directory } })
  rmSync(directory, { recursive: true })
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toStartWith('threadbox: ')
  expect(stderr).toContain(says)
  expect(stderr.trimEnd()).not.toContain('\n')
})
