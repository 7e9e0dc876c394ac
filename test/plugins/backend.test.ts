import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, patiently, startServer, temporaryDirectory } from '../support/server.ts'

patiently()

const file = join(import.meta.dir, 'jails.ts')
const flags = ['--plugin', file, '--backend', 'jails']
let directory = ''
beforeAll(() => {
  directory = temporaryDirectory()
})
afterAll(() => rmSync(directory, { recursive: true }))

test('a backend of a plugin keeps the contract in the executable', async () => {
  const { code, stdout, stderr } = await command(['plugin', 'test', file], { env: { TMPDIR: directory } })
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toStartWith('backend jails\n  spawn\n    ok    gives stdout (')
  const passed = stdout.split('\n').filter(line => /^ +ok /.test(line)).length
  expect(passed).toBeGreaterThan(50)
  expect(stdout).toEndWith(`\n\n${passed} passed, 0 failed\n`)
  expect([...new Bun.Glob('*').scanSync({ cwd: directory, onlyFiles: false })]).toEqual([])
  // A whole suite of tests runs in it.
}, 300_000)

test('doctor tries what a backend of a plugin needs', async () => {
  const { code, stdout } = await command(['doctor', ...flags, '--data-dir', join(directory, 'doctor')])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^ok +isolation: .[\s\S]+\nserve will start\.\n$/m)
})

test('a sandbox stays on its backend, and says which plugin it wants', async () => {
  const data = join(directory, 'data')
  await using server = await startServer({ dataDirectory: data, flags })
  const id = await server.sandbox()
  expect((await server.exec(id, 'echo kept > kept; cat kept')).stdout).toBe('kept\n')
  await server.stop()

  // Another default: the sandbox is served by its own.
  server.options.flags = ['--plugin', file]
  await server.start()
  expect((await server.exec(id, 'cat kept')).stdout).toBe('kept\n')
  await server.stop()

  server.options.flags = []
  await server.start()
  const { status, body } = await server.ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'true' })
  expect([status, body.error.code]).toEqual([503, 'sandbox_unavailable'])
  expect(body.message).toBe(
    'The sandbox is on the backend jails, which this server was not started with: --plugin jails.ts.',
  )
  await server.stop()
  server.options.flags = ['--plugin', file]
  await server.start()
})

test('a backend that was never used here is not asked for what is left', async () => {
  const never = join(directory, 'never.ts')
  writeFileSync(
    never,
    `const no = () => { throw new Error('asked') }
     const backend = { name: 'never', isolation: 'container', check: no, create: no, open: no, list: no, async close() {} }
     export default { name: 'never', backend: () => backend }`,
  )
  await using server = await startServer({ flags: ['--plugin', never] })
  const id = await server.sandbox()
  expect((await server.exec(id, 'true')).exitCode).toBe(0)
  await server.stop()
  expect(server.stderr).toMatch(/^\S+ audit: head \S+\n$/)
})

test('what a backend gives is checked where it enters', async () => {
  const odd = join(directory, 'odd.ts')
  writeFileSync(
    odd,
    `const files = { read() {}, write() {}, info() {}, list() {}, makeDirectory() {}, rename() {} }
     const create = async ({ id }) => ({ id, confinement: [1], spawn() {}, connect() {}, files })
     const none = async () => []
     const backend = { name: 'odd', isolation: 'container', check: none, create, open: async () => {}, list: none, async close() {} }
     export default { name: 'odd', backend: () => backend }`,
  )
  const flags = ['--plugin', odd, '--backend', 'odd']
  await using server = await startServer({ flags })
  const { status, body } = await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })
  expect([status, body.error.code]).toEqual([503, 'sandbox_unavailable'])
  expect(body.message).toContain(
    'does not give an environment: confinement is not a list of strings, destroy is not a function, files.remove is not a function',
  )
  await server.stop()
  server.options.flags = []
  await server.start()
})
