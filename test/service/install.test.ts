import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, executable, patiently, temporaryDirectory } from '../support/server.ts'

patiently()

/** What a machine begins with. */
let root = ''
const at = (path: string) => join(root, path)
const read = (path: string) => readFileSync(at(path), 'utf8')
const service = (...args: string[]) => command(['service', ...args, '--root', root])

const unit = '/etc/systemd/system/threadbox.service'
const environment = '/etc/threadbox/environment'
const installed = '/usr/local/bin/threadbox'
const wanted = '/etc/systemd/system/multi-user.target.wants/threadbox.service'

beforeAll(() => {
  root = temporaryDirectory()
  mkdirSync(at('/etc'))
  writeFileSync(at('/etc/group'), 'root:x:0:\n')
  // What the unit refers to.
  cpSync('/usr/lib/systemd/system', at('/usr/lib/systemd/system'), { recursive: true, verbatimSymlinks: true })
})
afterAll(() => rmSync(root, { recursive: true }))

test('nothing is there: status says so', async () => {
  const { code, stdout } = await service('status')
  expect([code, stdout]).toEqual([1, expect.stringMatching(/^unit +not installed\n/)])
})

test('install brings the executable, the settings and the unit, and enables it', async () => {
  const { code, stdout, stderr } = await service('install', '--port', '7171', '--model-key', 'a "quoted" $key\\')
  expect([code, stderr]).toEqual([0, ''])
  const [, key = ''] = /^API key, kept in \/etc\/threadbox\/environment: (tbx_\S{40})$/m.exec(stdout) ?? []
  expect(
    read(environment)
      .split('\n')
      .filter(line => !line.startsWith('#')),
  ).toEqual([
    'THREADBOX_PORT="7171"',
    'THREADBOX_MODEL_KEY="a \\"quoted\\" \\$key\\\\"',
    `THREADBOX_API_KEY="${key}"`,
    '',
  ])
  expect([environment, installed, unit].map(path => statSync(at(path)).mode & 0o777)).toEqual([0o600, 0o755, 0o644])
  expect(readFileSync(at(installed)).equals(readFileSync(executable))).toBe(true)
  expect(lstatSync(at(wanted)).isSymbolicLink()).toBe(true)
  expect(read(unit)).not.toContain('key')
  expect((await service('status')).stdout).toMatch(/^unit +\/etc\S+\nsettings +\S+\nenabled +enabled\n$/)
})

test('installed again, it changes nothing', async () => {
  const before = [read(environment), read(unit), statSync(at(installed)).ino]
  const { code, stdout } = await service('install')
  expect([code, stdout]).toEqual([0, [installed, environment, unit].map(path => `unchanged ${root}${path}\n`).join('')])
  expect([read(environment), read(unit), statSync(at(installed)).ino]).toEqual(before)
})

test('a setting is replaced; lines of one’s own and the key stay', async () => {
  writeFileSync(at(environment), `${read(environment)}ANTHROPIC_API_KEY=own-key-of-mine\nTHREADBOX_IDLE_MS=x\n`)
  // What stands there is checked too, however it is written.
  expect((await service('install')).stderr).toBe(
    'threadbox: THREADBOX_IDLE_MS: must be a whole number from 0 to 9007199254740991\n',
  )
  writeFileSync(at(environment), read(environment).replace('IDLE_MS=x', 'IDLE_MS=0'))
  const before = read(environment)
  const { code } = await service('install', '--port', '7172', '--data-dir', '/srv/a b')
  expect(code).toBe(0)
  expect(read(environment)).toBe(`${before.replace('7171', '7172')}THREADBOX_DATA_DIR="/srv/a b"\n`)
  expect(read(unit)).toContain('\nReadWritePaths="/srv/a b"\n')
  expect(statSync(at('/srv/a b')).mode & 0o777).toBe(0o700)
})

const backends: [string, string[], RegExp[]][] = [
  [
    'jails, as root',
    [],
    [/^KillMode=process$/m, /^Delegate=yes$/m, /^OOMPolicy=continue$/m, /^CapabilityBoundingSet=.*CAP_SYS_ADMIN/m],
  ],
  ['jails, as an ordinary user', ['--user', 'somebody'], [/^User=somebody$/m, /^CapabilityBoundingSet=$/m]],
  [
    'containers of an engine',
    ['--backend', 'docker'],
    [/^DynamicUser=yes$/m, /^SupplementaryGroups=docker$/m, /^CapabilityBoundingSet=$/m],
  ],
  ['sandboxes elsewhere', ['--backend', 'e2b'], [/^DynamicUser=yes$/m, /^RestrictNamespaces=yes$/m]],
]
test.each(backends)('systemd understands the unit for %s', async (_, flags, lines) => {
  writeFileSync(at('/etc/group'), 'root:x:0:\ndocker:x:999:\n')
  rmSync(at(environment))
  const { code } = await service('install', ...flags)
  expect(code).toBe(0)
  for (const line of lines) expect(read(unit)).toMatch(line)
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    ['systemd-analyze', 'verify', '--man=no', '--recursive-errors=no', `--root=${root}`, 'threadbox.service'],
    { stderr: 'pipe' },
  )
  expect([exitCode, stdout.toString(), stderr.toString()]).toEqual([0, '', ''])
})

test.each([
  ['jails', [], 6.5],
  ['sandboxes elsewhere', ['--backend', 'e2b'], 2],
] as const)('the unit for %s is closed as far as it can be', async (_, flags, most) => {
  const { stdout } = await command(['service', 'install', '--print', ...flags])
  const file = at('threadbox.service')
  writeFileSync(file, stdout)
  const analysis = Bun.spawnSync([
    'systemd-analyze',
    'security',
    '--offline=true',
    '--no-pager',
    file,
  ]).stdout.toString()
  const [, exposure = 'none'] = /Overall exposure level for threadbox\.service: ([\d.]+)/.exec(analysis) ?? []
  expect(Number(exposure)).toBeLessThan(most)
})

test('paths are written as seen from here, and lists whole', async () => {
  const plugins = ['--plugin', 'a.ts', '--plugin', '/b.ts', '--agents=agents']
  expect((await command(['service', 'install', '--root', root, ...plugins], { cwd: '/srv' })).code).toBe(0)
  expect(read(environment)).toContain('\nTHREADBOX_PLUGIN="/srv/a.ts,/b.ts"\nTHREADBOX_AGENTS="/srv/agents"\n')
})

test('--print writes nothing', async () => {
  const before = statSync(at(unit)).mtimeMs
  const { code, stdout } = await service('install', '--print', '--backend', 'docker')
  expect([code, stdout]).toEqual([0, expect.stringContaining('[Service]')])
  expect(statSync(at(unit)).mtimeMs).toBe(before)
})

test('remove leaves the data and the settings', async () => {
  mkdirSync(at('/var/lib/threadbox'), { recursive: true })
  expect((await service('remove')).code).toBe(0)
  expect([unit, wanted, installed, environment, '/var/lib/threadbox'].map(path => existsSync(at(path)))).toEqual([
    ...[false, false, false],
    ...[true, true],
  ])
  expect((await service('remove')).code).toBe(0)
})

test('status finds the unit of a Debian package', async () => {
  const packaged = '/usr/lib/systemd/system/threadbox.service'
  writeFileSync(at(packaged), '[Service]\nExecStart=/usr/bin/threadbox serve\n')
  const { code, stdout } = await service('status')
  rmSync(at(packaged))
  expect([code, stdout]).toEqual([0, expect.stringMatching(new RegExp(`^unit +${packaged}\n`))])
})

test.each([
  ['no action', [], /^threadbox: usage: threadbox service install/],
  ['a setting that is none', ['install', '--no-such', 'x'], /^threadbox: --no-such: no such flag/],
  ['a setting that is wrong', ['install', '--port', 'x'], /^threadbox: THREADBOX_PORT: must be a whole number/],
  [
    'a directory of nobody',
    ['install', '--backend', 'e2b', '--data-dir', '/srv/x'],
    /^threadbox: --data-dir: name its owner with --user/,
  ],
  ['settings where there are none', ['status', '--port', '1'], /^threadbox: --port: no such flag\n$/],
])('a mistake is told, with exit code 2, and nothing is written: %s', async (_, args, said) => {
  const { code, stderr } = await service(...args)
  expect([code, stderr]).toEqual([2, expect.stringMatching(said)])
  expect(existsSync(at(unit))).toBe(false)
})

test('where systemd does not run, install and remove say so', async () => {
  const missing = await command(['service', 'install'], { env: { PATH: '/none' } })
  expect([missing.code, missing.stderr]).toEqual([1, 'threadbox: service: there is no systemctl here\n'])
})
