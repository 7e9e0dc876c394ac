import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { until } from '../support/until.ts'
import { NEWEST, type Sdk, sdks, useOptions } from './sdks.ts'

const app = useApp()
const options = useOptions(app)
const isRoot = process.getuid?.() === 0

// Of the older ones, what they say in words of their own; matrix.test.ts uses each method of each.
describe.each(sdks)('commands by the SDK %s', (version, sdk) => {
  let sandbox: InstanceType<Sdk['Sandbox']>
  beforeAll(async () => {
    sandbox = await sdk.Sandbox.create('base', { ...options, envs: { OWN: 'own' } })
  })
  afterAll(() => sandbox.kill())

  test('a command gives what it prints, as it prints it', async () => {
    const seen: string[] = []
    const result = await sandbox.commands.run('echo out; echo error >&2; printf "ü$OWN$WORD"', {
      envs: { WORD: 'word' },
      onStdout: text => void seen.push(text),
      onStderr: text => void seen.push(`!${text}`),
    })
    expect(result).toMatchObject({ exitCode: 0, stdout: 'out\nüownword', stderr: 'error\n' })
    expect(seen.filter(each => !each.startsWith('!')).join('')).toBe('out\nüownword')
    expect(seen).toContain('!error\n')
  })

  test('a command in the background is listed, joined, sent input and killed', async () => {
    const seen: string[] = []
    const handle = await sandbox.commands.run('while read -r line; do echo "got $line"; done; echo over', {
      background: true,
      stdin: true,
      envs: { LISTED: 'yes' },
      cwd: '/tmp',
      onStdout: text => void seen.push(text),
    })
    const [listed] = (await sandbox.commands.list()).filter(({ pid }) => pid === handle.pid)
    expect(listed).toMatchObject({ cmd: '/bin/bash', envs: { LISTED: 'yes' }, cwd: '/tmp' })
    expect(listed?.args.slice(0, 2)).toEqual(['-l', '-c'])
    const joined = await sandbox.commands.connect(handle.pid)
    await sandbox.commands.sendStdin(handle.pid, 'news\n')
    await until(() => seen.join('') === 'got news\n')
    expect(await sandbox.commands.kill(handle.pid)).toBe(true)
    await expect(handle.wait()).rejects.toMatchObject({ exitCode: -1, error: 'signal: killed' })
    await expect(joined.wait()).rejects.toMatchObject({ stdout: 'got news\n' })
    expect(await sandbox.commands.kill(handle.pid)).toBe(false)
    await expect(sandbox.commands.connect(handle.pid)).rejects.toBeInstanceOf(sdk.NotFoundError)
    await expect(sandbox.commands.sendStdin(handle.pid, 'x')).rejects.toBeInstanceOf(sdk.NotFoundError)
  })

  if (version !== NEWEST) return

  test('a command that fails rejects with its exit code and output', async () => {
    const failing = sandbox.commands.run('echo before; echo why >&2; exit 3')
    await expect(failing).rejects.toBeInstanceOf(sdk.CommandExitError)
    await expect(failing).rejects.toMatchObject({ exitCode: 3, stdout: 'before\n', stderr: 'why\n' })
  })

  test('a command runs as its user, in that user’s home or where it is to', async () => {
    const shown = async (more: object) => (await sandbox.commands.run('whoami; pwd; echo $HOME', more)).stdout
    expect(await shown({})).toBe(`${isRoot ? 'user' : 'root'}\n/home/user\n/home/user\n`)
    expect(await shown({ user: 'root' })).toBe('root\n/root\n/root\n')
    await sandbox.commands.run('mkdir -p below')
    expect(await shown({ cwd: 'below' })).toMatch('/home/user/below\n')
    expect(await shown({ cwd: '/tmp' })).toMatch('\n/tmp\n')
    await expect(shown({ cwd: '/none' })).rejects.toBeInstanceOf(sdk.InvalidArgumentError)
    await expect(shown({ user: 'nobody-there' })).rejects.toBeInstanceOf(sdk.AuthenticationError)
    if (isRoot) expect((await sandbox.commands.run('sudo whoami')).stdout).toBe('root\n')
  })

  test('a command that takes too long is killed, with all that it started', async () => {
    const running = sandbox.commands.run('sleep 7411 & sleep 7411', { timeoutMs: 300 })
    await expect(running).rejects.toBeInstanceOf(sdk.TimeoutError)
    await until(async () => !(await sandbox.commands.run('pgrep -f "sleep 741[1]" || true')).stdout)
  })

  test('a time limit holds when the client has gone, too', async () => {
    const handle = await sandbox.commands.run('sleep 7413', { background: true, timeoutMs: 3000 })
    await handle.disconnect()
    const running = async () => (await sandbox.commands.list()).some(({ pid }) => pid === handle.pid)
    expect(await running()).toBe(true)
    await until(async () => !(await running()))
  })

  test('stdin ends', async () => {
    const handle = await sandbox.commands.run('wc -c', { background: true, stdin: true })
    await sandbox.commands.sendStdin(handle.pid, 'x'.repeat(100_000))
    await sandbox.commands.closeStdin(handle.pid)
    expect((await handle.wait()).stdout).toBe('100000\n')
  })

  test('a process goes on when its client is gone, and is met again', async () => {
    const options = { background: true, stdin: true } as const
    const handle = await sandbox.commands.run('read first; echo $first; read second; seq 500', options)
    await handle.disconnect()
    await sandbox.commands.sendStdin(handle.pid, 'one\n')
    const again = await sandbox.commands.connect(handle.pid)
    await sandbox.commands.sendStdin(handle.pid, 'two\n')
    expect((await again.wait()).stdout).toMatch(/\n499\n500\n$/)
  })

  test('much output comes whole and in its order', async () => {
    const { stdout } = await sandbox.commands.run('seq 400000')
    expect(stdout.length).toBe(2_688_895)
    expect(stdout.endsWith('399999\n400000\n')).toBe(true)
  })

  test('a terminal shows, is sent keys, resized, and killed', async () => {
    let shown = ''
    const onData = (bytes: Uint8Array) => {
      shown += Buffer.from(bytes)
    }
    const pty = await sandbox.pty.create({ cols: 91, rows: 20, onData })
    const type = (text: string) => sandbox.pty.sendInput(pty.pid, new TextEncoder().encode(text))
    await type('stty size; echo $TERM; whoami\n')
    await until(() => shown.includes('20 91') && shown.includes('xterm-256color'))
    await sandbox.pty.resize(pty.pid, { cols: 77, rows: 15 })
    await type('stty size\n')
    await until(() => shown.includes('15 77'))
    await type('exit 4\n')
    await expect(pty.wait()).rejects.toMatchObject({ exitCode: 4 })
    const other = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {}, user: 'root', cwd: '/' })
    expect(await sandbox.pty.kill(other.pid)).toBe(true)
    expect(await sandbox.pty.kill(other.pid)).toBe(false)
  })
})

test('a sandbox that is killed cuts what runs in it', async () => {
  const [, sdk] = sdks.at(-1)!
  const sandbox = await sdk.Sandbox.create('base', options)
  const handle = await sandbox.commands.run('sleep 7412', { background: true })
  const ended = handle.wait().catch(error => error)
  await sandbox.kill()
  expect(await ended).toBeInstanceOf(sdk.TimeoutError)
})
