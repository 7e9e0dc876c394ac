import type { E2bOptions } from './client.ts'
import { type Sdk, sdks } from './sdks.ts'

/** What a line of the matrix has to try its method with. */
interface Scene {
  /** Methods that only some versions have are called without types. */
  sdk: any
  options: E2bOptions
  /** A sandbox that every line of one version shares. */
  sandbox: any
  create(more?: object): Promise<any>
}

type Line = [method: string, use: (scene: Scene) => unknown]

const assert = (isSo: unknown, what: string): void => {
  if (!isSo) throw new Error(`not so: ${what}`)
}

/** A process that waits for input. */
const waiting = ({ sandbox }: Scene) => sandbox.commands.run('cat', { background: true, stdin: true })

/** A terminal, and what it has printed. */
async function terminal({ sandbox }: Scene) {
  let printed = ''
  const handle = await sandbox.pty.create({
    ...{ cols: 80, rows: 24, timeoutMs: 30_000 },
    onData: (bytes: Uint8Array) => {
      printed += Buffer.from(bytes).toString()
    },
  })
  return { handle, printed: () => printed }
}

const path = '/home/user/repository'

/** Makes a repository with one commit, which the lines after this one use. */
async function makeRepository({ sandbox }: Scene): Promise<void> {
  await sandbox.git.init(path, { initialBranch: 'main' })
  await sandbox.git.configureUser('Anna', 'anna@example.com', { scope: 'local', path })
  await sandbox.files.write(`${path}/a`, 'a')
  await sandbox.git.add(path)
  await sandbox.git.commit(path, 'first', { authorName: 'Anna', authorEmail: 'anna@example.com' })
}

/** Each method of each class, and a use of it that fails when it does not do what it is for. */
export const lines: readonly Line[] = [
  ['Sandbox.create', ({ sandbox }) => assert(sandbox.sandboxId, 'an id')],
  [
    'Sandbox.betaCreate',
    async ({ sdk, options }) => (await sdk.Sandbox.betaCreate({ ...options, autoPause: true })).kill(),
  ],
  ['Sandbox.connect', ({ sdk, sandbox, options }) => sdk.Sandbox.connect(sandbox.sandboxId, options)],
  ['sandbox.connect', ({ sandbox, options }) => sandbox.connect(options)],
  ['Sandbox.list', async ({ sdk, options }) => assert((await sdk.Sandbox.list(options).nextItems()).length > 0, 'one')],
  ['Sandbox.getInfo', ({ sdk, sandbox, options }) => sdk.Sandbox.getInfo(sandbox.sandboxId, options)],
  ['sandbox.getInfo', ({ sandbox }) => sandbox.getInfo()],
  ['Sandbox.getFullInfo', ({ sdk, sandbox, options }) => sdk.Sandbox.getFullInfo(sandbox.sandboxId, options)],
  ['sandbox.isRunning', async ({ sandbox }) => assert(await sandbox.isRunning(), 'it runs')],
  ['Sandbox.setTimeout', ({ sdk, sandbox, options }) => sdk.Sandbox.setTimeout(sandbox.sandboxId, 600_000, options)],
  ['sandbox.setTimeout', ({ sandbox }) => sandbox.setTimeout(600_000)],
  ['sandbox.getMetrics', ({ sandbox, options }) => sandbox.getMetrics(options)],
  ['sandbox.getHost', ({ sandbox }) => assert(sandbox.getHost(80).startsWith('80-'), 'a host')],
  ['sandbox.updateNetwork', ({ sandbox }) => sandbox.updateNetwork({ denyOut: ['8.8.8.8'] })],
  [
    'sandbox.uploadUrl',
    async scene => {
      const form = new FormData()
      form.append('file', new Blob(['up']), 'up.txt')
      const response = await fetch(await scene.sandbox.uploadUrl('up.txt'), { method: 'POST', body: form })
      assert(response.ok, 'it is taken')
      assert((await scene.sandbox.files.read('up.txt')) === 'up', 'it is there')
    },
  ],
  [
    'sandbox.downloadUrl',
    async ({ sandbox }) => {
      await sandbox.files.write('down.txt', 'down')
      assert((await (await fetch(await sandbox.downloadUrl('down.txt'))).text()) === 'down', 'the same')
    },
  ],
  [
    'sandbox.pause',
    async ({ create, options }) => {
      const other = await create()
      assert(await other.pause(options), 'it is paused')
      await other.connect(options)
      await other.kill(options)
    },
  ],
  [
    'sandbox.betaPause',
    async ({ create, options }) => {
      const other = await create()
      assert(await other.betaPause(options), 'it is paused')
      await other.kill(options)
    },
  ],
  [
    'sandbox.kill',
    async ({ create, sdk, options }) => {
      const other = await create()
      await other.kill(options)
      assert(!(await sdk.Sandbox.kill(other.sandboxId, options)), 'it is gone')
    },
  ],
  [
    'sandbox.createSnapshot',
    async ({ sdk, sandbox, options }) => {
      const { snapshotId } = await sandbox.createSnapshot(options)
      const other = await sdk.Sandbox.create(snapshotId, options)
      await other.kill(options)
      await sdk.Sandbox.deleteSnapshot(snapshotId, options)
    },
  ],
  ['sandbox.listSnapshots', ({ sandbox, options }) => sandbox.listSnapshots(options).nextItems()],
  [
    'Sandbox.deleteSnapshot',
    async ({ sdk, options }) => assert((await sdk.Sandbox.deleteSnapshot('snap_none', options)) === false, 'none'),
  ],
  [
    'sandbox.fork',
    async ({ sandbox }) => {
      const [fork] = await sandbox.fork({ count: 1 })
      await fork.kill()
    },
  ],
  ['sandbox.getMcpToken', ({ sandbox }) => sandbox.getMcpToken()],
  ['commands.run', async ({ sandbox }) => assert((await sandbox.commands.run('echo hi')).stdout === 'hi\n', 'hi')],
  ['commands.list', ({ sandbox }) => sandbox.commands.list()],
  [
    'commands.connect',
    async scene => {
      const { pid } = await waiting(scene)
      const handle = await scene.sandbox.commands.connect(pid)
      await handle.kill()
    },
  ],
  [
    'commands.kill',
    async scene => assert(await scene.sandbox.commands.kill((await waiting(scene)).pid), 'it is killed'),
  ],
  [
    'commands.sendStdin',
    async scene => {
      const handle = await waiting(scene)
      await scene.sandbox.commands.sendStdin(handle.pid, 'in')
      await handle.kill()
    },
  ],
  [
    'commands.closeStdin',
    async scene => {
      const handle = await waiting(scene)
      await scene.sandbox.commands.closeStdin(handle.pid)
      assert((await handle.wait()).exitCode === 0, 'it ends')
    },
  ],
  ['pty.create', async scene => (await terminal(scene)).handle.kill()],
  [
    'pty.sendInput',
    async scene => {
      const { handle, printed } = await terminal(scene)
      await scene.sandbox.pty.sendInput(handle.pid, new TextEncoder().encode('echo $((40+2)); exit\n'))
      await handle.wait()
      assert(printed().includes('42'), 'it has run')
    },
  ],
  [
    'pty.resize',
    async scene => {
      const { handle } = await terminal(scene)
      await scene.sandbox.pty.resize(handle.pid, { cols: 100, rows: 30 })
      await handle.kill()
    },
  ],
  [
    'pty.connect',
    async scene => {
      const { handle } = await terminal(scene)
      await (await scene.sandbox.pty.connect(handle.pid, { onData() {} })).kill()
    },
  ],
  ['pty.kill', async scene => assert(await scene.sandbox.pty.kill((await terminal(scene)).handle.pid), 'it is killed')],
  ['files.write', ({ sandbox }) => sandbox.files.write('written', 'w')],
  ['files.writeFiles', ({ sandbox }) => sandbox.files.writeFiles([{ path: 'many', data: 'w' }])],
  ['files.read', async ({ sandbox }) => assert((await sandbox.files.read('written')) === 'w', 'the same')],
  ['files.list', async ({ sandbox }) => assert((await sandbox.files.list('/')).length > 3, 'some')],
  ['files.getInfo', async ({ sandbox }) => assert((await sandbox.files.getInfo('written')).size === 1, 'its size')],
  ['files.exists', async ({ sandbox }) => assert(!(await sandbox.files.exists('none')), 'none')],
  ['files.makeDir', ({ sandbox }) => sandbox.files.makeDir('directory')],
  ['files.rename', ({ sandbox }) => sandbox.files.rename('written', 'renamed')],
  ['files.remove', ({ sandbox }) => sandbox.files.remove('renamed')],
  [
    'files.watchDir',
    async ({ sandbox }) => {
      const seen = Promise.withResolvers<void>()
      const handle = await sandbox.files.watchDir('directory', () => seen.resolve())
      await sandbox.files.write('directory/a', 'a')
      await seen.promise
      await handle.stop()
    },
  ],
  ['git.init', makeRepository],
  ['git.status', async ({ sandbox }) => assert((await sandbox.git.status(path)).isClean, 'it is clean')],
  ['git.branches', ({ sandbox }) => sandbox.git.branches(path)],
  ['git.createBranch', ({ sandbox }) => sandbox.git.createBranch(path, 'other')],
  ['git.clone', ({ sandbox }) => sandbox.git.clone(path, { path: `/tmp/${crypto.randomUUID()}` })],
  ['Template.exists', async ({ sdk, options }) => assert(await sdk.Template.exists('base', options), 'it is there')],
  [
    'Template.build',
    ({ sdk, options }) =>
      sdk.Template.build(sdk.Template().fromImage('debian:12'), 'mine', { ...options, onBuildLogs() {} }),
  ],
  ['Template.getTags', ({ sdk, options }) => sdk.Template.getTags('base', options)],
  ['Volume.list', ({ sdk, options }) => sdk.Volume.list(options)],
  ['Volume.create', ({ sdk, options }) => sdk.Volume.create('mine', options)],
  ['Secret.list', ({ sdk, options }) => sdk.Secret.list(options).nextItems()],
  ['Secret.create', ({ sdk, options }) => sdk.Secret.create({ name: 'mine', value: 'x', ...options })],
]

const classes: Readonly<Record<string, (scene: Scene) => any>> = {
  Sandbox: ({ sdk }) => sdk.Sandbox,
  sandbox: ({ sandbox }) => sandbox,
  commands: ({ sandbox }) => sandbox.commands,
  pty: ({ sandbox }) => sandbox.pty,
  files: ({ sandbox }) => sandbox.files,
  git: ({ sandbox }) => sandbox.git,
  Template: ({ sdk }) => sdk.Template,
  Volume: ({ sdk }) => sdk.Volume,
  Secret: ({ sdk }) => sdk.Secret,
}

/** Uses every method of one version. An empty text: the version does not have it. */
export async function tryVersion(sdk: Sdk, options: E2bOptions): Promise<string[]> {
  const create = (more: object = {}) => sdk.Sandbox.create('base', { ...options, ...more })
  const sandbox = await create({ timeoutMs: 600_000 })
  const scene: Scene = { sdk, options, sandbox, create }
  const results: string[] = []
  try {
    for (const [method, use] of lines) {
      const [holder = '', name = ''] = method.split('.')
      if (typeof classes[holder]?.(scene)?.[name] !== 'function') results.push('')
      else results.push(await tried(() => use(scene)))
    }
  } finally {
    await sdk.Sandbox.kill(sandbox.sandboxId, options)
  }
  return results
}

async function tried(use: () => unknown): Promise<string> {
  try {
    await use()
    return 'works'
  } catch (error) {
    const { message } = error as Error
    return message.split('\n', 1)[0]!.replaceAll('|', '/').slice(0, 120)
  }
}

/** The table of all versions, as docs/e2b.md has it. */
export async function drawMatrix(options: E2bOptions): Promise<string[][]> {
  const columns = await Promise.all(sdks.map(([, sdk]) => tryVersion(sdk, options)))
  const head = ['method', ...sdks.map(([version]) => version)]
  const rows = lines.map(([method], index) => [`\`${method}\``, ...columns.map(column => column[index] || '–')])
  return [head, ...rows]
}
