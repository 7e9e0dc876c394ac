import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../../package.json'
import { command, patiently, startServer, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

test('the first start prints a key, and no later one does', async () => {
  await using server = await startServer({ apiKey: '' })
  const printed = /^API key of the team default, shown only now: (tbx_\S{40})\n/m
  await until(() => printed.test(server.stdout))
  const [, key = ''] = printed.exec(server.stdout)!
  expect(server.stderr).not.toContain(key)
  expect((await server.ask('GET', '/v1/sandboxes')).status).toBe(401)
  server.key = key
  expect((await server.ask('GET', '/v1/sandboxes')).status).toBe(200)
  await server.stop()
  await server.start()
  expect((await server.ask('GET', '/v1/sandboxes')).status).toBe(200)
  await server.stop()
  expect(server.stdout).not.toMatch(/tbx_|shown only now/)
  expect(server.stdout).toContain(`\n  API keys   threadbox keys create --data-dir ${server.dataDirectory}\n`)
})

test('where a key is given, none is made', async () => {
  await using server = await startServer()
  await server.stop()
  expect(server.stdout).not.toMatch(/tbx_|shown only now/)
  expect((await command(['keys', 'list', '--data-dir', server.dataDirectory])).stdout).toBe('')
})

test('a start says what runs: version, place, backend, isolation, model and agents', async () => {
  await using server = await startServer({ env: { OPENAI_API_KEY: 'sk-test-0123456789' } })
  await server.stop()
  expect(server.stdout).toBe(`threadbox listening on ${server.url}
  version    ${version}
  data       ${server.dataDirectory}
  sandboxes  nsjail (namespaces)
  model      openai/gpt-5.2
  agents     coder, echo
  API keys   threadbox keys create --data-dir ${server.dataDirectory}
  console    threadbox sign-in --data-dir ${server.dataDirectory}
`)
})

test('without a model it says how to get one', async () => {
  await using server = await startServer()
  await server.stop()
  expect(server.stdout).toContain(
    "\n  model      none yet: set a provider's key, such as ANTHROPIC_API_KEY, or --model\n",
  )
})

test('--log-level debug logs a line a request, without query, headers and body', async () => {
  await using server = await startServer({ flags: ['--log-level', 'debug'] })
  const id = await server.sandbox()
  await server.ask('GET', `/v1/sandboxes/${id}/files?path=/tmp/secret-in-query`)
  await server.ask('GET', '/v1/tbx_secretkeyinpath/x')
  await server.ask('GET', `/v1/sandboxes/${id}/ports/8000/secret-of-an-app`)
  await server.ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'true secret-in-body' })
  await server.stop()
  expect(server.stderr).toMatch(/^\S+Z POST \/v1\/sandboxes\/? 201 \d+ ms$/m)
  expect(server.stderr).toContain(` GET /v1/sandboxes/${id}/files 404 `)
  expect(server.stderr).toContain(' GET /v1/***/x 404 ')
  expect(server.stderr).toContain(` GET /v1/sandboxes/${id}/ports/8000/ 502 `)
  expect(server.stderr).toContain(` POST /v1/sandboxes/${id}/exec 200 `)
  expect(server.stderr).not.toContain('secret')
  expect(server.stderr).not.toContain(server.key)
})

test('requests are not logged unless asked for, and --log-level error leaves out what is no error', async () => {
  await using server = await startServer()
  const id = await server.sandbox()
  await server.exec(id, 'curl -s http://10.0.0.1/ || true')
  await until(() => server.stderr.includes(': '))
  expect(server.stderr).not.toContain('/v1/')
  await server.stop()
  server.options.flags = ['--log-level', 'error']
  await server.start()
  await server.exec(id, 'curl -s http://10.0.0.1/ || true')
  await server.stop()
  expect(server.stderr).toBe('')
})

test('agents of a directory are applied at start', async () => {
  const directory = temporaryDirectory()
  writeFileSync(join(directory, 'helper.json'), JSON.stringify({ slug: 'helper' }))
  {
    await using server = await startServer({ flags: ['--agents', directory] })
    await server.sandbox({ agent: 'helper' })
  }
  rmSync(directory, { recursive: true })
})

test.each([
  {
    what: 'a port that is taken',
    flag: '--port',
    value: (port: string) => port,
    says: '--host, --port: cannot listen on 127.0.0.1:',
  },
  {
    what: 'an address of another machine',
    flag: '--host',
    value: () => '192.0.2.1',
    says: 'cannot listen on 192.0.2.1:',
  },
  {
    what: 'agents that are missing',
    flag: '--agents',
    value: () => '/none',
    says: '--agents: /none: no such file or directory',
    code: 2,
  },
])('$what: the server says so and ends', async ({ flag, value, says, code: expected = 1 }) => {
  await using server = await startServer()
  const directory = temporaryDirectory()
  const flags = ['--data-dir', directory, '--port', '0', flag, value(new URL(server.url).port)]
  const { code, stdout, stderr } = await command(['serve', ...flags])
  rmSync(directory, { recursive: true })
  expect([code, stdout]).toEqual([expected, ''])
  expect(stderr).toStartWith('threadbox: ')
  expect(stderr).toContain(says)
  expect(stderr.trimEnd()).not.toContain('\n')
})

test('a data directory that cannot be made is named with its setting', async () => {
  const { code, stderr } = await command(['serve', '--data-dir', '/proc/none', '--port', '0'])
  expect([code, stderr]).toEqual([1, 'threadbox: --data-dir: /proc/none: no such file or directory\n'])
})
