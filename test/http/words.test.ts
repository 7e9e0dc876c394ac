import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { say } from '../support/chat.ts'

/** What is wrong is said in words: no expression, no name of an error or of a system call, no type of ours. */
const jargon = /\^|\$|\\0|Expected|TypeBox|E[A-Z]{4,}|posix|spawn|undefined|\[object/

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
  const setUp =
    'mkdir -p /w/full && echo x >/w/file && echo x >/w/full/x && printf "#!/none\\n" >/w/lost && chmod 755 /w/lost && mkfifo /w/fifo'
  await app.shell(id, setUp)
})

const fill = (text: string) => text.replaceAll(':id', id)
const NUL = '\u0000'
const PATH = 'must be an absolute path, as /home/user/file'

describe('a field that is wrong is said in words', () => {
  const wrong: [string, string, unknown, string][] = [
    ['POST', '/v1/sandboxes', {}, 'agent: required'],
    ['POST', '/v1/sandboxes', [], 'body: must be an object'],
    ['POST', '/v1/sandboxes', null, 'body: must be an object'],
    ['POST', '/v1/sandboxes', { agent: 7 }, 'agent: must be a text'],
    ['POST', '/v1/sandboxes', { agent: 'x'.repeat(101) }, 'agent: must have no more than 100 characters'],
    ['POST', '/v1/sandboxes', { agent: 'echo', timeoutMs: 'soon' }, 'timeoutMs: must be a whole number'],
    ['POST', '/v1/sandboxes', { agent: 'echo', timeoutMs: 1.5 }, 'timeoutMs: must be a whole number'],
    ['POST', '/v1/sandboxes', { agent: 'echo', timeoutMs: 1 }, 'timeoutMs: must be 1000 or more'],
    [
      'POST',
      '/v1/sandboxes',
      { agent: 'echo', envs: { '1A': 'x' } },
      'envs.1A: a name must have letters, digits and underscores alone, and begin with no digit',
    ],
    ['POST', '/v1/sandboxes', { agent: 'echo', envs: { A: NUL } }, 'envs.A: must not have the character U+0000'],
    ['POST', '/v1/sandboxes', { agent: 'echo', setup: [''] }, 'setup.0: must not be empty'],
    ['POST', '/v1/sandboxes', { agent: 'echo', setup: 'ls' }, 'setup: must be a list'],
    ['POST', '/v1/sandboxes', { agent: 'echo', files: { a: 'x' } }, 'files: every key must be an absolute path'],
    ['PATCH', '/v1/sandboxes/:id', { networkAllowOut: 'x' }, 'networkAllowOut: must be a list or null'],
    ['PATCH', '/v1/sandboxes/:id', { networkAllowOut: [''] }, 'networkAllowOut.0: must not be empty'],
    ['POST', '/v1/sandboxes/:id/exec', { command: `a${NUL}` }, 'command: must not have the character U+0000'],
    ['POST', '/v1/sandboxes/:id/exec', { command: '' }, 'command: must not be empty'],
    ['POST', '/v1/sandboxes/:id/exec', { command: 'ls', cwd: 'here' }, `cwd: ${PATH}`],
    ['POST', '/v1/sandboxes/:id/exec', { command: 'ls', cwd: '/none' }, 'cwd: no such directory: /none'],
    ['POST', '/v1/sandboxes/:id/exec', { command: 'ls', cwd: '/w/file' }, 'cwd: not a directory: /w/file'],
    [
      'POST',
      '/v1/sandboxes/:id/exec',
      { command: 'ls', timeoutMs: 1e9 },
      'timeoutMs: must be a number from 1 to 600000',
    ],
    ['POST', '/v1/sandboxes/:id/processes', { command: 7 }, 'command: must be a text or a list'],
    ['POST', '/v1/sandboxes/:id/processes', { command: [] }, 'command: must not be empty'],
    ['POST', '/v1/sandboxes/:id/processes', { command: [NUL] }, 'command.0: must not have the character U+0000'],
    [
      'POST',
      '/v1/sandboxes/:id/processes',
      { command: 'ls', pty: { columns: 0, rows: 1 } },
      'pty.columns: must be a number from 1 to 9999',
    ],
    ['POST', '/v1/sandboxes/:id/processes', { command: 'ls', pty: 1 }, 'pty: must be true or false or an object'],
    ['POST', '/v1/sandboxes/:id/processes/1/signal', { signal: 'LOUD' }, 'signal: no such signal'],
    [
      'GET',
      '/v1/sandboxes/:id/processes/1/output?offset=-1',
      undefined,
      'offset: must be a number of bytes, 0 or more',
    ],
    ['GET', '/v1/sandboxes/:id/processes/1/output?follow=no', undefined, 'follow: must be "true" or "false"'],
    ['GET', '/v1/sandboxes?limit=0', undefined, 'limit: must be a whole number from 1 to 999'],
    ['GET', '/v1/sandboxes/:id/threads?limit=x', undefined, 'limit: must be a whole number from 1 to 999'],
    ['GET', '/v1/agents/echo/logs?limit=101', undefined, 'limit: must be a whole number from 1 to 100'],
    ['GET', '/v1/agents/echo/logs?status=odd', undefined, 'status: must be "active" or "error"'],
    ['GET', '/v1/sandboxes/:id/files?path=here', undefined, `path: ${PATH}`],
    ['GET', '/v1/sandboxes/:id/files', undefined, 'path: required'],
    [
      'GET',
      '/v1/sandboxes/:id/files?path=/w&format=x',
      undefined,
      'format: must be "blob" or "stream" or "text" or "tar"',
    ],
    ['GET', '/v1/sandboxes/:id/files/list?path=/&depth=0', undefined, 'depth: must be a whole number from 1 to 99'],
    ['POST', '/v1/sandboxes/:id/files', { path: 'here', content: '' }, `path: ${PATH}`],
    ['POST', '/v1/sandboxes/:id/files/rename', { oldPath: '/a' }, 'newPath: required'],
    ['POST', '/v1/sandboxes/:id/git/clone', { url: 'a\nb' }, 'url: must be one line, without the character U+0000'],
    ...['https://', 'http:/x', 'https:', 'http://:80/x'].map((url): [string, string, unknown, string] => [
      'POST',
      '/v1/sandboxes/:id/git/clone',
      { url },
      'url: must name a host and a repository, as https://example.com/group/project',
    ]),
    ['POST', '/v1/sandboxes/:id/git/clone', { url: 'x', depth: 0 }, 'depth: must be a number from 1 to 2147483647'],
    ['POST', '/v1/sandboxes/:id/ports/0/link', {}, 'port: must be a number from 1 to 65535'],
    ['POST', '/v1/sandboxes/:id/ports/65536/link', {}, 'port: must be a number from 1 to 65535'],
    [
      'POST',
      '/v1/sandboxes/:id/ports/80/link',
      { expiresIn: 'soon' },
      'expiresIn: must be a number and s, m, h or d, as 900s, 15m or 1h',
    ],
    ['POST', '/v1/tokens', { expiresIn: '1y' }, 'expiresIn: must be a number and s, m, h or d, as 900s, 15m or 1h'],
    ['POST', '/v1/tokens', { agents: 'echo' }, 'agents: must be a list'],
    ['POST', '/v1/tokens', { userId: '' }, 'userId: must not be empty'],
    ['POST', '/v1/tokens', { colour: 1 }, 'colour: not known here; agents, agent, userId, approve, expiresIn are'],
    ['POST', '/v1/chat/echo', { messages: [] }, 'messages: must not be empty'],
    [
      'POST',
      '/v1/chat/echo',
      { messages: [{ role: 'tool', parts: [] }] },
      'messages.0.role: must be "user" or "assistant" or "system"',
    ],
    ['POST', '/v1/chat/echo', { messages: [say('a')], id: 7 }, 'id: must be a text or null'],
    [
      'POST',
      '/v1/chat/echo',
      { messages: [say('a')], options: { maxBudgetUsd: -1 } },
      'options.maxBudgetUsd: must be 0 or more',
    ],
    [
      'POST',
      '/v1/chat/echo',
      { messages: [say('a')], options: { systemPrompt: { type: 'preset', preset: 7 } } },
      'options.systemPrompt.preset: must be a text',
    ],
  ]
  test.each(wrong)('%s %s %j', async (method, path, body, words) => {
    const answer = await app.ask(method, fill(path), body)
    expect([answer.status, answer.body.message]).toEqual([400, words])
    expect(answer.body.message).not.toMatch(jargon)
  })
})

describe('a body that is no JSON is told with the place of the first mistake', () => {
  test.each([
    ['{"agent":"echo",}', 'line 1, column 17: property name expected'],
    ['{\n  "agent": echo\n}', 'line 2, column 12: invalid symbol'],
    ['agent=echo', 'line 1, column 1: invalid symbol'],
    ['{"agent":"echo"', 'line 1, column 16: close brace expected'],
    ['{"agent" "echo"}', 'line 1, column 10: colon expected'],
    ['--x\r\ncontent-disposition: form-data; name="agent"\r\n\r\necho\r\n--x--', 'line 1, column 1: '],
  ])('%j', async (text, place) => {
    const answer = await app.ask('POST', '/v1/sandboxes', undefined, { body: new Blob([text]) })
    expect(answer.status).toBe(400)
    expect(answer.body.message).toStartWith(`body: not JSON: ${place}`)
    expect(answer.body.message).not.toMatch(jargon)
  })
})

describe('a file that cannot be had is told with its path', () => {
  test.each([
    ['GET', 'files?path=/none', undefined, 404, 'No such file: /none'],
    ['GET', 'files?path=/w', undefined, 400, 'Not a regular file: /w'],
    ['GET', 'files?path=/w/fifo', undefined, 400, 'Not a regular file: /w/fifo'],
    ['GET', 'files?path=/w/file/x', undefined, 404, 'No such file: /w/file/x leads through what is no directory'],
    ['GET', 'files/list?path=/w/file', undefined, 400, 'Not a directory: /w/file'],
    ['GET', 'files/list?path=/none', undefined, 404, 'No such file: /none'],
    ['POST', 'files', { path: '/w', content: 'x' }, 400, 'It is a directory: /w'],
    ['POST', 'files', { path: '/proc/none', content: 'x' }, 404, 'No such file: /proc/none'],
    ['POST', 'files', { path: '/usr/bin/env', content: 'x' }, 400, 'The file system is read-only: /usr/bin/env'],
    ['POST', 'files/mkdir', { path: '/w/file' }, 400, 'It exists already: /w/file'],
    ['POST', 'files/rename', { oldPath: '/none', newPath: '/x' }, 404, 'No such file: /none'],
    ['DELETE', 'files?path=/', undefined, 400, 'The root cannot be removed.'],
    ['DELETE', 'files?path=/none', undefined, 404, 'No such file: /none'],
  ])('%s %s %j', async (method, path, body, status, words) => {
    const answer = await app.ask(method, `/v1/sandboxes/${id}/${path}`, body)
    expect([answer.status, answer.body.message]).toEqual([status, words])
  })
})

describe('a program that cannot be started is told with the reason', () => {
  test.each([
    [['/none'], 'no such program: /none'],
    [['none'], 'no such program in PATH: none'],
    [[''], 'its name is empty'],
    [['/w/file/x'], 'no such program: /w/file/x'],
    [['/w'], 'it is a directory: /w'],
    [['/w/file'], 'permission denied: /w/file is not executable'],
    [['/w/lost'], 'what runs /w/lost is not there: the interpreter that its first line names, or its loader'],
  ])('%j', async (command, words) => {
    for (const pty of [false, true]) {
      const answer = await app.ask('POST', `/v1/sandboxes/${id}/processes`, { command, ...(pty && { pty }) })
      expect([answer.status, answer.body.message]).toEqual([400, `The command could not be started: ${words}`])
    }
  })

  test('one that has no place among the processes of its sandbox', async () => {
    app.agent('few', { limits: { processes: 16 } })
    const few = await app.sandbox({ agent: 'few' })
    const start = () => app.ask('POST', `/v1/sandboxes/${few}/processes`, { command: ['sleep', '600'] })
    let answer = await start()
    for (let count = 1; answer.status === 201 && count < 20; count++) answer = await start()
    expect([answer.status, answer.body.message]).toEqual([
      503,
      'The command could not be started: the sandbox has as many processes as it may, 16',
    ])
  })
})

describe('a limit that no sandbox can live with is refused with the least that it needs', () => {
  test.each([
    [{ memoryMb: 1 }, 'limits.memoryMb: 1 is too low for a sandbox to start: it needs 16 MB of memory or more'],
    [{ processes: 1 }, 'limits.processes: 1 is too low for a sandbox to start: it needs 16 processes or more'],
    [{ cpus: 0.001 }, 'limits.cpus: 0.001 is too low for a sandbox to start: it needs 0.01 CPU cores or more'],
    [{ diskMb: 0.5 }, 'limits.diskMb: 0.5 is too low for a sandbox to start: it needs 1 MB of disk or more'],
  ])('%j', async (limits, words) => {
    app.agent('tight', { limits })
    const { status, body } = await app.ask('POST', '/v1/sandboxes', { agent: 'tight' })
    expect([status, body.message]).toEqual([400, words])
  })

  test('with the least of all, commands run', async () => {
    app.agent('tight', { limits: { memoryMb: 16, processes: 16, cpus: 0.5, diskMb: 8 } })
    const tight = await app.sandbox({ agent: 'tight' })
    expect(await app.exec(tight, 'echo a | cat')).toMatchObject({ stdout: 'a\n', stderr: '', exitCode: 0 })
  })
})
