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

/** What a command printed, after it has ended well. */
async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await command(args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

test.each(['', 'help', '--help', '-h'])('threadbox %s lists every command', async line => {
  const stdout = await printed(...line.split(' ').filter(Boolean))
  for (const words of [...commands, ...others]) expect(stdout).toContain(`\n  ${words}`)
})

const single = ['serve', 'doctor', 'chat', 'shell', 'run', 'exec', 'version', 'licenses']
const nested = {
  keys: ['create', 'list', 'revoke'],
  agents: ['apply', 'deploy', 'list', 'show', 'remove'],
  base: ['add', 'list', 'remove'],
  sandboxes: ['list', 'show', 'remove'],
  threads: ['list', 'show'],
  service: ['install', 'status', 'remove'],
  plugin: ['test', 'types'],
}
const names = [...single, ...Object.entries(nested).flatMap(([subject, all]) => all.map(each => `${subject} ${each}`))]

test.each(names)(
  'help of %s says how it is used, with an example, however it is asked for, in 80 columns',
  async name => {
    const words = name.split(' ')
    const stdout = await printed(...words, '--help')
    expect(stdout).toStartWith(`usage: threadbox ${name}`)
    expect(stdout).toMatch(new RegExp(`\nexample:\n  .*threadbox ${name}`))
    expect(stdout.split('\n').filter(line => [...line].length > 80 && !line.includes('threadbox '))).toEqual([])
    expect(await printed('help', ...words)).toBe(stdout)
    expect(await printed(...words, '--bogus', '-h')).toBe(stdout)
  },
)

test.each(Object.keys(nested))('help of %s names its commands', async subject => {
  const stdout = await printed('help', subject)
  for (const each of nested[subject as keyof typeof nested]) expect(stdout).toContain(`\n  ${subject} ${each} `)
})

test('help of serve has every setting, the default beside it', async () => {
  const stdout = await printed('serve', '--help')
  for (const flag of flags) expect(stdout).toContain(`\n  --${flag} `)
  expect(stdout).toMatch(/\n {2}--port N .*\(default: 7070\)\n/)
})

test('help of a command has its own flags and no setting that it does not take', async () => {
  const stdout = await printed('keys', 'create', '--help')
  for (const flag of ['name', 'team', 'expires-in', 'data-dir']) expect(stdout).toContain(`\n  --${flag} `)
  expect(stdout).not.toContain('--memory-mb')
})

test('what is after -- is no wish for help', async () => {
  const { code, stderr } = await command(['keys', 'revoke', '--data-dir', '/dev/null/none', '--', '--help'])
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^threadbox: --data-dir: /)])
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
      '--nope: no such flag',
      '--port: must be a whole number from 0 to 65535',
      'stray: not a flag, nor wanted here',
      'THREADBOX_API_KEY: must be 16 or more characters without spaces',
      'THREADBOX_CPUS: must be a number from 0 to 1024',
    ].sort(),
  )
})

test.each([
  { args: ['dance'], says: 'no such command: dance' },
  { args: ['serve', '--backend', 'cloud'], says: '--backend: there is no backend cloud' },
  { args: ['doctor', '--backend', 'cloud'], says: '--backend: there is no backend cloud' },
  { args: ['srve'], says: 'no such command: srve; did you mean serve?' },
  { args: ['keys', 'creat'], says: 'keys creat: no such command; did you mean create?' },
  { args: ['serve', '--prot=80'], says: '--prot: no such flag; did you mean --port?' },
  { args: ['keys', 'list', '--memory-mb', '1'], says: '--memory-mb: no such flag' },
  { args: ['keys', 'create', '--name'], says: '--name: wants a value' },
  { args: ['keys', 'create', '--name', '--team', 'x'], says: '--name: wants a value' },
  { args: ['chat', 'echo', 'x', '--new=yes'], says: '--new: takes no value' },
  { args: ['keys', 'list', '-x'], says: '-x: not a flag' },
  { args: ['doctor', '--bogus'], says: '--bogus: no such flag' },
  { args: ['keys'], says: 'usage: threadbox keys create | limit | list | revoke' },
  { args: ['keys', 'revoke'], says: 'ID is missing. usage: threadbox keys revoke [FLAGS] ID' },
  { args: ['keys', 'revoke', 'key_none'], says: 'There is no valid key key_none.' },
  { args: ['keys', 'create', '--expires-in', 'soon'], says: '--expires-in wants days, like 30d' },
  { args: ['agents'], says: 'usage: threadbox agents apply' },
  { args: ['agents', 'apply'], says: 'PATH is missing. usage: threadbox agents apply' },
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
