import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, patiently, startServer, temporaryDirectory } from '../support/server.ts'
import { readChunks, textIn } from '../support/sse.ts'

patiently()

const root = join(import.meta.dir, '../..')
let directory = ''
let file = ''

beforeAll(async () => {
  const page = await Bun.file(join(root, 'docs/plugins.md')).text()
  const [, example = ''] = /\n```ts script\.ts\n(\/\/ script\.ts: [\s\S]+?)```\n/.exec(page) ?? []
  directory = temporaryDirectory()
  file = join(directory, 'script.ts')
  writeFileSync(file, example)
})
afterAll(() => rmSync(directory, { recursive: true }))

test('the example is short', async () => {
  const lines = (await Bun.file(file).text()).split('\n').length
  expect([lines > 20, lines < 100]).toEqual([true, true])
})

test('the example has the types that the executable prints', async () => {
  const { code, stdout } = await command(['plugin', 'types'])
  expect(code).toBe(0)
  writeFileSync(join(directory, 'threadbox.d.ts'), stdout)
  const compilerOptions = {
    ...{ strict: true, noEmit: true, target: 'esnext', module: 'preserve', lib: ['esnext'], types: ['bun-types'] },
  }
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  const check = () =>
    Bun.spawnSync([process.execPath, join(root, 'node_modules/typescript/bin/tsc'), '-p', directory]).stdout.toString()
  expect(check()).toBe('')
  // That it is empty says something.
  writeFileSync(join(directory, 'wrong.ts'), "import { runShell } from 'threadbox'\nrunShell(1, { command: 'true' })\n")
  expect(check()).toContain("Argument of type 'number' is not assignable to parameter of type 'Environment'")
})

test('the example keeps the contract', async () => {
  const { code, stdout, stderr } = await command(['plugin', 'test', 'script.ts'], { cwd: directory })
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^engine script\n {2}ok {4}says a text \(\d+ ms\)\n/)
  expect(stdout).toEndWith('\n\n8 passed, 0 failed\n')
})

test('the example answers in a chat', async () => {
  const agents = join(directory, 'agents')
  mkdirSync(agents)
  const program = 'import sys\nprint("I was told:", sys.stdin.read().upper())\n'
  const sandbox = { envs: { AGENT_COMMAND: 'python3 triage.py' }, files: { '/home/user/triage.py': program } }
  writeFileSync(join(agents, 'triage.json'), JSON.stringify({ slug: 'triage', engine: 'script', sandbox }))
  await using server = await startServer({ flags: ['--plugin', file, '--agents', agents] })
  const messages = [{ role: 'user', parts: [{ type: 'text', text: 'it is late' }] }]
  const response = await server.request('POST', '/v1/chat/triage', { body: { messages } })
  const chunks = await readChunks(response)
  expect(textIn(chunks)).toBe('I was told: IT IS LATE\n')
  expect(chunks.at(-1)).toMatchObject({ type: 'finish' })
})
