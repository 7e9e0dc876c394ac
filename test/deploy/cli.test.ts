import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, temporaryDirectory, useServer } from '../support/server.ts'

const server = useServer()
const project = temporaryDirectory()
const root = join(import.meta.dir, '../..')
afterAll(() => rmSync(project, { recursive: true }))
beforeAll(() => {
  const agent = join(project, 'agents/adder')
  mkdirSync(join(agent, 'template/bin'), { recursive: true })
  mkdirSync(join(project, 'agents/notes'), { recursive: true })
  cpSync(join(root, 'test/deploy/agents/adder.ts'), join(agent, 'index.ts'))
  writeFileSync(join(agent, 'template/bin/hello'), '#!/bin/sh\necho hello from the template\n', { mode: 0o755 })
  writeFileSync(join(agent, '.mcp.json'), JSON.stringify({ mcpServers: { local: { command: 'true' } } }))
  writeFileSync(join(project, 'agents/single.ts'), 'export default { systemPrompt: "I am one file.", tools: {} }')
  // Where an author has installed what the agent imports.
  symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'))
})

const deploy = (...args: string[]) =>
  command(['agents', 'deploy', ...args], { env: { THREADBOX_URL: server.url, THREADBOX_API_KEY: server.key } })
const agent = async (slug: string) => (await server.ask('GET', `/v1/agents/${slug}`)).body

test('a directory of agents is deployed, with its archive and MCP servers', async () => {
  const { code, stdout, stderr } = await deploy(project)
  expect([code, stderr]).toEqual([0, ''])
  const lines = stdout.trimEnd().split('\n')
  expect(lines.filter(line => !line.startsWith('  '))).toEqual([
    'adder is deployed: version 1',
    'single is deployed: version 1',
  ])
  expect(lines.filter(line => line.startsWith('  ')).length).toBeGreaterThan(3)
  expect(await agent('adder')).toMatchObject({ model: 'claude-sonnet-4-6', tools: [{ name: 'add' }, {}, {}, {}, {}] })
  const id = await server.sandbox({ agent: 'adder' })
  expect((await server.exec(id, '/home/user/bin/hello; cat /home/user/note.txt')).stdout).toBe(
    'hello from the template\nfrom the agent',
  )
  const shown = await command(['agents', 'show', 'adder', '--data-dir', server.dataDirectory])
  expect(JSON.parse(shown.stdout).options.mcpServers).toEqual(['local'])
})

test('one of them under another name, a file, a directory of one', async () => {
  expect((await deploy(project, '--agent', 'single', '--name', 'other')).stdout).toEndWith(
    'other is deployed: version 1\n',
  )
  expect((await deploy(join(project, 'agents/single.ts'))).stdout).toEndWith('single is deployed: version 2\n')
  expect((await deploy(join(project, 'agents/adder'), '--engine', 'echo')).stdout).toEndWith(
    'adder is deployed: version 2\n',
  )
  expect(await agent('adder')).toMatchObject({ runtime: 'echo', activeVersion: 2, totalDeployments: 2 })
})

describe('what cannot be deployed is told, with the exit code', () => {
  const failing: [string, string, string[], number, RegExp][] = [
    ['without a path', '', [], 2, /PATH is missing. usage: threadbox agents deploy/],
    ['without a file', '', ['/no/such'], 2, /no such file/],
    ['without agents', '', [join(project, 'agents/notes')], 2, /has no agent/],
    ['with a name for two', '', [project, '--name', 'x'], 2, /--name is for one agent/],
    ['with a name that is none', 'export default {}', ['FILE', '--name', 'X Y'], 2, /a slug has small letters/],
    ['that does not parse', 'export default {', ['FILE'], 1, /cannot be bundled/],
    ['that imports what is not there', 'import "no-such-package"', ['FILE'], 1, /no-such-package/],
    ['that throws', 'throw new Error("at load")', ['FILE'], 1, /bundle: .*at load/],
    ['for an engine that is not here', 'export default {}', ['FILE', '--engine', 'nope'], 1, /nope is not here/],
    ['by no server', 'export default {}', ['FILE', '--url', 'http://127.0.0.1:1'], 1, /no server answers/],
    ['by an unknown key', 'export default {}', ['FILE', '--key', 'tbx_nobody'], 1, /not known/],
  ]
  test.each(failing)('%s', async (_, source, args, code, message) => {
    const file = join(project, 'broken.ts')
    writeFileSync(file, source)
    const result = await deploy(...args.map(arg => (arg === 'FILE' ? file : arg)))
    expect([result.code, result.stdout.replace(/^ {2}.*\n/gm, '')]).toEqual([code, ''])
    expect(result.stderr).toMatch(message)
  })
})
