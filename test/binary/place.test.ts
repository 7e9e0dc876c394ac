import { afterAll, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, executable, temporaryDirectory, useServer } from '../support/server.ts'

const server = useServer()
const directory = temporaryDirectory()
afterAll(() => rmSync(directory, { recursive: true }))
const other = join(directory, 'other')
const file = join(directory, 'agent.json')
const write = (agent: unknown) => writeFileSync(file, typeof agent === 'string' ? agent : JSON.stringify(agent))

test('a change where no server runs says so, and where servers run', async () => {
  write({ slug: 'mine' })
  const { code, stdout, stderr } = await command(['agents', 'apply', file, '--data-dir', other])
  expect([code, stdout]).toEqual([0, `mine is applied in ${other}.\n`])
  expect(stderr).toStartWith(`threadbox: no server runs on ${other} now; servers run on `)
  expect(stderr).toContain(server.dataDirectory)
  for (const args of [
    ['keys', 'create'],
    ['agents', 'remove', 'mine'],
  ])
    expect((await command([...args, '--data-dir', other])).stderr).toStartWith(
      `threadbox: no server runs on ${other} now`,
    )
})

test('beside a server nothing is said, nor for what changes nothing', async () => {
  const { stderr } = await command(['keys', 'create', '--data-dir', server.dataDirectory])
  expect(stderr).toBe('')
  expect((await command(['keys', 'list', '--data-dir', other])).stderr).toBe('')
})

test('a server that was killed is none', async () => {
  await server.kill()
  const { stderr } = await command(['keys', 'create', '--data-dir', server.dataDirectory])
  await server.start()
  expect(stderr).toStartWith(`threadbox: no server runs on ${server.dataDirectory} now`)
  expect(stderr).not.toContain(`servers run on ${server.dataDirectory}`)
})

test('the directory of the only server is found', async () => {
  // Where only this server’s processes are seen: other tests have servers too.
  const only = join(directory, 'only')
  const lines = `mount -t tmpfs none /var/lib && mkfifo ${directory}/said
    "$0" serve --port 0 --data-dir ${only} > ${directory}/said 2>/dev/null & server=$!
    exec 3< ${directory}/said; read -r line <&3
    "$0" keys create --name found; "$0" agents list --quiet
    kill $server; wait $server`
  const result = await command(['-c', lines, executable], {
    command: ['unshare', '--mount', '--pid', '--fork', '--mount-proc', 'bash'],
  })
  expect(result.stderr).toBe(`threadbox: the data directory is ${only}, where a server runs\n`)
  expect((await command(['keys', 'list', '--data-dir', only])).stdout).toContain('\tfound\t')
})

const faulty: [string, unknown, RegExp[]][] = [
  [
    'an engine that is not there',
    { slug: 'x', engine: 'foo' },
    [/: engine: there is no engine foo; there are .*echo.*ai-sdk.*claude-code.*acp/],
  ],
  ['an engine that is misspelt', { slug: 'x', engine: 'ai-sdx' }, [/; did you mean ai-sdk\?; there are/]],
  [
    'several faults of one file',
    { slug: 'Not A Slug', engine: 'foo', options: { maxTurns: 0 }, colour: 'red' },
    [
      /: slug: must have small letters, digits and hyphens between them\n/,
      /: engine: /,
      /: options\.maxTurns: /,
      /: colour: /,
    ],
  ],
  ['what is not JSON', '{\n  "slug": "x"\n  "name": "y"\n}\n', [/agent\.json: line 3, column 3: comma expected\n$/]],
  ['what ends too early', '{"slug":', [/agent\.json: line 1, column 9: value expected\n$/]],
]
test.each(faulty)('agents apply refuses %s, and tells all of it', async (_, agent, said) => {
  write(agent)
  const { code, stdout, stderr } = await command(['agents', 'apply', file, '--data-dir', server.dataDirectory])
  expect([code, stdout]).toEqual([1, ''])
  for (const words of said) expect(stderr).toMatch(words)
  expect((await command(['agents', 'list', '--data-dir', server.dataDirectory])).stdout).not.toContain('x\t')
})

test('serve and exec refuse an engine that is not there too', async () => {
  write({ slug: 'x', engine: 'foo' })
  const flags = ['--data-dir', join(directory, 'third'), '--port', '0', '--agents', file]
  const { code, stderr } = await command(['serve', ...flags])
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/^threadbox: --agents: .*: engine: there is no engine foo; /),
  ])
  const one = await command(['exec', '--agent', file, '--', 'true'])
  expect([one.code, one.stderr]).toEqual([2, expect.stringMatching(/: engine: there is no engine foo; /)])
})

test('an engine of the server’s plugin is known', async () => {
  const plugin = join(directory, 'plugin.ts')
  writeFileSync(
    plugin,
    `export default { name: 'mine', engine: () => ({ name: 'mine', async *run() { return { status: 'completed' } } }) }`,
  )
  await server.stop()
  const { flags = [] } = server.options
  server.options.flags = [...flags, '--plugin', plugin]
  await server.start()
  write({ slug: 'plugged', engine: 'mine' })
  const { code, stdout } = await command(['agents', 'apply', file, '--data-dir', server.dataDirectory])
  expect([code, stdout]).toEqual([0, `plugged is applied in ${server.dataDirectory}.\n`])
})

test('a configuration file that is not JSON is told with its line', async () => {
  const config = join(directory, 'config.json')
  writeFileSync(config, '{\n  "port": 1,\n}\n')
  const { code, stderr } = await command(['doctor', '--config', config])
  expect([code, stderr]).toEqual([2, `threadbox: config: ${config}: line 3, column 1: property name expected\n`])
})
