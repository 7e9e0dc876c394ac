import { beforeAll, expect, test } from 'bun:test'
import { Sandbox } from '@e2b/code-interpreter'
import { useApp } from '../support/app.ts'
import { useOptions } from './sdks.ts'

const app = useApp()
const options = useOptions(app)
let plain: Sandbox
let sandbox: Sandbox

/** The guest is a Bun. Each start of it leaves a line. */
const start = `#!/bin/sh
echo started >>/home/user/starts
BUN_BE_BUN=1 exec /dev/.threadbox/threadbox run /opt/code-interpreter/serve.js
`
/** Gives the code back as what it has printed, and who runs it. */
const serve = `
Bun.serve({
  hostname: '127.0.0.1', port: 49999,
  async fetch(request) {
    const { code } = await request.json()
    const lines = [
      { type: 'stdout', text: code, timestamp: 1 },
      { type: 'result', is_main_result: true, text: process.env.HOME },
    ]
    return new Response(lines.map(line => JSON.stringify(line) + '\\n').join(''))
  },
})
`

const write = (to: Sandbox, name: string, text: string) =>
  to.files.write(`/opt/code-interpreter/${name}`, text, { user: 'root' })
const allowRunning = (of: Sandbox) => of.commands.run('chmod 755 /opt/code-interpreter/start', { user: 'root' })

beforeAll(async () => {
  plain = await Sandbox.create('base', options)
  sandbox = await Sandbox.create('base', options)
  await write(sandbox, 'serve.js', serve)
  await write(sandbox, 'start', start)
  await allowRunning(sandbox)
})

test('the code interpreter of a template starts at the first use of its port, once for all who use it', async () => {
  const results = await Promise.all(['a', 'b', 'c'].map(code => sandbox.runCode(code)))
  expect(results.map(({ logs, text }) => [logs.stdout.join(''), text])).toEqual(
    ['a', 'b', 'c'].map(code => [code, '/home/user']),
  )
  expect(await sandbox.files.read('starts')).toBe('started\n')
})

test('it starts again when it has ended', async () => {
  const [process] = await sandbox.commands.list()
  await sandbox.commands.kill(process!.pid)
  expect((await sandbox.runCode('again')).logs.stdout).toEqual(['again'])
  expect(await sandbox.files.read('starts')).toBe('started\nstarted\n')
})

test('a template without a code interpreter says so', async () => {
  await expect(plain.runCode('1')).rejects.toThrow('The template of the sandbox has no code interpreter.')
})

test('one that ends at once is a port that is not open', async () => {
  await write(plain, 'start', '#!/bin/sh\nexit 1\n')
  await allowRunning(plain)
  await expect(plain.runCode('1')).rejects.toThrow('The sandbox is running but port is not open')
})
