import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { command, executable, patiently, startServer, temporaryDirectory } from '../support/server.ts'
import { readChunks } from '../support/sse.ts'

patiently()

let directory = ''
let copy = ''
beforeAll(() => {
  directory = temporaryDirectory()
  copy = join(directory, 'alone/threadbox')
  mkdirSync(join(directory, 'alone'))
  copyFileSync(executable, copy, constants.COPYFILE_FICLONE)
  chmodSync(copy, 0o755)
})
afterAll(() => rmSync(directory, { recursive: true }))

const uid = 65534
const asUser = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']

function homeOf(user: number): string {
  const home = join(directory, crypto.randomUUID())
  mkdirSync(home, { mode: 0o700 })
  chownSync(home, user, user)
  return home
}

const outputOf = async (response: Response) =>
  (await readChunks(response)).find(({ type }) => type === 'tool-output-available')?.output

test('alone in its directory, with nothing in the environment, it serves a sandbox', async () => {
  const apiKey = 'a-key-for-this-test'
  const clean = ['env', '-i', `THREADBOX_API_KEY=${apiKey}`, copy]
  await using server = await startServer({ command: clean, apiKey, cwd: '/usr' })
  expect(await outputOf(await server.chat('$ echo $((6 * 7)); pwd'))).toBe('42\n/home/user\n')
  expect(readdirSync(join(directory, 'alone'))).toEqual(['threadbox'])
})

test('what lies in the working directory is not run and not read', async () => {
  const cwd = homeOf(0)
  writeFileSync(join(cwd, 'bunfig.toml'), 'preload = ["./trap.ts"]\n[run]\npreload = ["./trap.ts"]\n')
  writeFileSync(join(cwd, 'trap.ts'), `require('node:fs').writeFileSync(${JSON.stringify(join(cwd, 'sprung'))}, '')`)
  writeFileSync(join(cwd, 'tsconfig.json'), '{')
  writeFileSync(join(cwd, 'package.json'), '{')
  writeFileSync(join(cwd, '.env'), 'THREADBOX_API_KEY=short\nTHREADBOX_PORT=70000\n')
  expect((await command(['version'], { command: [copy], cwd })).code).toBe(0)
  await using server = await startServer({ command: [copy], cwd })
  expect(await outputOf(await server.chat('$ echo fine'))).toBe('fine\n')
  expect(existsSync(join(cwd, 'sprung'))).toBe(false)
})

test('an ordinary user can serve sandboxes', async () => {
  const home = homeOf(uid)
  const dataDirectory = join(home, 'data')
  await using server = await startServer({ command: [...asUser, copy], env: { HOME: home }, cwd: '/', dataDirectory })
  expect(statSync(`/proc/${server.pid}`).uid).toBe(uid)
  const response = await server.chat('$ id -u; touch /etc/x /home/user/y && ls /home/user')
  const sandboxId = response.headers.get('x-sandbox-id')!
  expect(await outputOf(response)).toBe('0\ny\n')
  const { body } = await server.ask('GET', `/v1/sandboxes/${sandboxId}`)
  expect(body.isolation.details[0]).toContain(`user id ${uid} of the server`)
  expect(await server.stop()).toBe(0)
  await server.start()
  expect((await server.exec(sandboxId, 'ls /etc/x')).stdout).toBe('/etc/x\n')
})

test.each([
  { where: 'below the home directory', variables: (_: string) => ({}), path: '.local/share/threadbox' },
  {
    where: 'in XDG_DATA_HOME',
    variables: (home: string) => ({ XDG_DATA_HOME: join(home, 'xdg') }),
    path: 'xdg/threadbox',
  },
])("an ordinary user's data are $where, for the user alone", async ({ variables, path }) => {
  const home = homeOf(uid)
  const env = { HOME: home, ...variables(home) }
  const { stdout: help } = await command(['serve', '--help'], { command: [...asUser, copy], env })
  expect(help.replaceAll(/\s+/g, ' ')).toContain(`(default: ${join(home, path)})`)
  expect((await command(['keys', 'create'], { command: [...asUser, copy], env })).code).toBe(0)
  expect(statSync(join(home, path)).mode & 0o777).toBe(0o700)
  expect(statSync(join(home, path, 'threadbox.db')).mode & 0o777).toBe(0o600)
})
