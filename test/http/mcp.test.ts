import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import asking from '../support/asking-engine.ts'
import { type McpClient, useMcp } from '../support/mcp-client.ts'
import { until } from '../support/until.ts'

const app = useApp([], {}, () => [asking])
const connect = useMcp(app)
let client: McpClient
let id = ''
beforeAll(async () => {
  client = await connect()
  id = await app.sandbox()
})
const call = (name: string, args: object = {}) => client.call(name, args)

describe('the tools', () => {
  test('say what they take, and whether they change anything', async () => {
    const { tools } = await client.listTools()
    const kinds = tools.map(({ name, annotations = {} }) => {
      const { readOnlyHint, destructiveHint } = annotations
      return `${name}: ${readOnlyHint ? 'reads' : destructiveHint ? 'destroys' : 'adds'}`
    })
    expect(kinds).toEqual([
      'list_agents: reads',
      'create_sandbox: adds',
      'list_sandboxes: reads',
      'pause_sandbox: destroys',
      'delete_sandbox: destroys',
      'exec: destroys',
      'read_file: reads',
      'write_file: destroys',
      'list_files: reads',
      'search_files: reads',
      'start_process: destroys',
      'list_processes: reads',
      'read_process_output: reads',
      'stop_process: destroys',
      'show_port: adds',
      'chat: destroys',
    ])
    for (const { description = '', inputSchema } of tools) {
      expect(description.length).toBeGreaterThan(20)
      expect(inputSchema.type).toBe('object')
      expect(JSON.stringify(inputSchema)).not.toContain('errorMessage')
    }
  })

  test('make a sandbox, list it, pause it and delete it', async () => {
    const agents = await call('list_agents')
    expect(agents.structuredContent.agents).toContainEqual({ slug: 'echo', name: 'Echo' })
    const made = await call('create_sandbox', { agent: 'echo', files: { '/home/user/a': 'x' }, setup: ['echo ready'] })
    const { sandboxId } = made.structuredContent
    const listed = async () => (await call('list_sandboxes', { limit: 5 })).structuredContent.sandboxes
    expect((await listed())[0]).toMatchObject({ sandboxId, agent: 'echo', status: 'active' })
    await call('pause_sandbox', { sandboxId })
    expect((await listed())[0]).toMatchObject({ sandboxId, status: 'paused' })
    expect((await call('read_file', { sandboxId, path: '/home/user/a' })).structuredContent.content).toBe('x')
    await call('delete_sandbox', { sandboxId })
    expect((await call('exec', { sandboxId, command: 'true' })).structuredContent.error.code).toBe('sandbox_not_found')
  })

  test('run a command', async () => {
    const result = await call('exec', {
      sandboxId: id,
      command: 'echo one; echo $A >&2; pwd; exit 3',
      envs: { A: 'two' },
    })
    expect(result.content).toEqual([{ type: 'text', text: 'one\n/home/user\n\nstderr:\ntwo\n\nexit code 3' }])
    const printed = { stdout: 'one\n/home/user\n', stderr: 'two\n', truncated: false, exitCode: 3 }
    expect(result).toMatchObject({ structuredContent: printed })
    expect(result.isError).toBeUndefined()
  })

  test('give the beginning and the end of long output', async () => {
    const command = 'echo first; seq 1 200000; echo last'
    const { stdout, truncated } = (await call('exec', { sandboxId: id, command, maxCharacters: 1000 }))
      .structuredContent
    expect(truncated).toBe(true)
    expect(stdout).toStartWith('first\n1\n')
    expect(stdout).toEndWith('200000\nlast\n')
    expect(stdout).toMatch(/\n\[\d+ characters are left out here\]\n/)
    expect(stdout.length).toBeLessThan(1100)
  })

  test('say what a command printed before its time was over', async () => {
    const result = await call('exec', { sandboxId: id, command: 'echo before; sleep 100', timeoutMs: 300 })
    expect(result).toMatchObject({
      isError: true,
      structuredContent: { stdout: 'before\n', error: { code: 'command_timeout' } },
    })
  })

  test('write, read, list and search files', async () => {
    const path = '/home/user/dir/a.txt'
    const content = Array.from({ length: 50 }, (_, index) => `line ${index + 1}\n`).join('')
    const written = await call('write_file', { sandboxId: id, path, content })
    expect(written.structuredContent).toEqual({ path, size: content.length })
    const read = async (fields: object) =>
      (await call('read_file', { sandboxId: id, path, ...fields })).structuredContent
    expect(await read({})).toEqual({ path, content, nextLine: null })
    expect(await read({ line: 49 })).toEqual({ path, content: 'line 49\nline 50\n', nextLine: null })
    expect(await read({ line: 2, lines: 2 })).toEqual({ path, content: 'line 2\nline 3\n', nextLine: 4 })
    expect((await read({ maxCharacters: 100 })).nextLine).toBe(14)
    const listed = await call('list_files', { sandboxId: id, path: '/home/user/dir' })
    expect(listed.structuredContent.entries).toMatchObject([{ path, type: 'file', size: content.length }])
    const found = await call('search_files', {
      sandboxId: id,
      path: '/home/user',
      pattern: 'line 4[89]$',
      glob: '*.txt',
    })
    expect(found.structuredContent.matches).toEqual([`${path}:48:line 48`, `${path}:49:line 49`])
    const none = await call('search_files', { sandboxId: id, path: '/home/user', pattern: 'line', glob: '*.md' })
    expect(none.content[0].text).toBe('Nothing is found.')
  })

  test('read no file that is no text', async () => {
    const result = await call('read_file', { sandboxId: id, path: '/bin/bash' })
    expect(result).toMatchObject({ isError: true, structuredContent: { error: { code: 'invalid_request' } } })
  })

  test('start a process, read its output, show its port and stop it', async () => {
    const command = 'echo begun; read line < <(sleep 100)'
    const started = await call('start_process', { sandboxId: id, command, name: 'server' })
    const { pid } = started.structuredContent
    const { processes } = (await call('list_processes', { sandboxId: id })).structuredContent
    expect(processes).toMatchObject([{ pid, name: 'server', status: 'running' }])
    const read = async (fields: object) =>
      (await call('read_process_output', { sandboxId: id, pid, ...fields })).structuredContent
    await until(async () => (await read({})).output === 'begun\n', 'its output')
    expect(await read({ offset: 6, waitMs: 50 })).toMatchObject({ status: 'running', output: '', nextOffset: 6 })
    const { url } = (await call('show_port', { sandboxId: id, port: 8000 })).structuredContent
    expect(url).toStartWith(`${app.url}/v1/sandboxes/${id}/ports/8000/tbl_`)
    await call('stop_process', { sandboxId: id, pid })
    expect((await call('list_processes', { sandboxId: id })).structuredContent.processes).toEqual([])
    const over = await call('start_process', { sandboxId: id, command: 'exit 4' })
    const ended = { sandboxId: id, pid: over.structuredContent.pid, waitMs: 60_000 }
    expect((await call('read_process_output', ended)).structuredContent).toMatchObject({
      status: 'exited',
      exitCode: 4,
    })
  })

  test('talk to an agent, and go on in its thread', async () => {
    const first = await call('chat', { agent: 'echo', sandboxId: id, message: 'Hello' })
    expect(first.structuredContent).toMatchObject({ sandboxId: id, status: 'completed', reply: 'Hello', approvals: [] })
    const { threadId } = first.structuredContent
    const again = await call('chat', { agent: 'echo', sandboxId: id, threadId, message: 'Again' })
    expect(again.structuredContent).toMatchObject({ threadId, reply: 'Again' })
    const failed = await call('chat', { agent: 'echo', sandboxId: id, message: '/fail' })
    expect(failed).toMatchObject({ isError: true, structuredContent: { status: 'failed' } })
  })

  test('tell what an agent waits for', async () => {
    app.agent('asking', {}, { engine: 'asking' })
    const { structuredContent } = await call('chat', { agent: 'asking', sandboxId: id, message: 'ask' })
    const [approval] = (await app.ask('GET', `/v1/approvals?threadId=${structuredContent.threadId}`)).body.approvals
    expect(structuredContent).toMatchObject({ status: 'waiting', approvals: [{ approvalId: approval.id }] })
  })

  test('name a wrong field and never repeat what it has', async () => {
    const wrong = async (name: string, args: object) => (await call(name, args)).content[0].text
    expect(await wrong('exec', { sandboxId: id })).toBe('invalid_request: command: required')
    expect(await wrong('exec', { sandboxId: id, command: 'true', cmd: 'x' })).toContain('cmd: not known here')
    expect(await wrong('exec', { sandboxId: id, command: 'true', cwd: 'hunter2' })).not.toContain('hunter2')
  })
})
