import { beforeAll, describe, expect, test } from 'bun:test'
import { AnClient as Client003 } from '21st-sdk-node-0.0.3'
import { AnClient as Client009 } from '21st-sdk-node-0.0.9'
import { AnClient as Client011 } from '21st-sdk-node-0.1.1'
import { gitUrl, serveGit } from '../support/git-server.ts'
import { leftovers } from '../support/leftovers.ts'
import { useServer } from '../support/server.ts'
import { readChunks, textIn, typesIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

const server = useServer()

const agent = 'echo'
const say = (text: string) => [{ role: 'user', parts: [{ type: 'text', text }] }]
const idOf = (kind: string) => expect.stringMatching(new RegExp(`^${kind}_[0-9a-f-]{36}$`))

const versions = [
  { version: '0.0.3', Client: Client003 },
  { version: '0.0.9', Client: Client009 },
  { version: '0.1.1', Client: Client011 },
] as const

describe.each(versions)('@21st-sdk/node $version', ({ Client }) => {
  let client: InstanceType<typeof Client>
  let sandboxId: string
  beforeAll(async () => {
    client = new Client({ apiKey: server.key, baseUrl: server.url })
    sandboxId = (await client.sandboxes.create({ agent })).id
  })

  test('creates a sandbox with files, variables and set-up commands, and deletes it', async () => {
    const made = await client.sandboxes.create({
      agent,
      files: { '/home/user/notes/a.txt': 'from a file' },
      envs: { GREETING: 'hello' },
      setup: ['echo "$GREETING $(cat notes/a.txt)" >set-up.txt'],
    })
    expect(made).toEqual({
      id: idOf('sbx'),
      sandboxId: idOf('env'),
      status: 'active',
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    const read = await client.sandboxes.files.read({ sandboxId: made.id, path: '/home/user/set-up.txt' })
    expect(read).toEqual({ path: '/home/user/set-up.txt', content: 'hello from a file\n' })
    expect(await client.sandboxes.get(made.sandboxId)).toMatchObject({
      ...made,
      error: null,
      agent: { slug: 'echo', name: 'Echo' },
      threads: [],
    })
    expect(await client.sandboxes.delete(made.id)).toBeUndefined()
    expect(await leftovers(made.sandboxId)).toEqual([])
    await expect(client.sandboxes.get(made.id)).rejects.toThrow('There is no such sandbox.')
  })

  test('says in words what it cannot do', async () => {
    await expect(client.sandboxes.create({ agent: 'nobody' })).rejects.toThrow('There is no agent "nobody".')
    await expect(client.sandboxes.create({ agent, setup: ['echo broken >&2; exit 3'] })).rejects.toThrow('broken')
    await expect(client.sandboxes.files.read({ sandboxId, path: '/none' })).rejects.toThrow('/none')
    await expect(client.sandboxes.exec({ sandboxId, command: 'sleep 60', timeoutMs: 200 })).rejects.toThrow('200 ms')
    await expect(client.threads.get({ sandboxId, threadId: 'thr_none' })).rejects.toThrow('There is no such thread.')
    const stranger = new Client({ apiKey: 'tbx_unknown', baseUrl: server.url })
    await expect(stranger.sandboxes.get(sandboxId)).rejects.toThrow('The API key is not known.')
  })

  test('runs commands', async () => {
    const command = 'pwd; echo "$WORD" >&2; exit 3'
    const result = await client.sandboxes.exec({
      sandboxId,
      command,
      cwd: '/usr',
      envs: { WORD: 'sûre' },
      timeoutMs: 9000,
    })
    expect(result).toMatchObject({ stdout: '/usr\n', stderr: 'sûre\n', exitCode: 3 })
  })

  test('writes and reads files', async () => {
    const path = '/opt/some where/ä.txt'
    await client.sandboxes.files.write({ sandboxId, files: { [path]: 'ein\nzwei\n', '/tmp/b': '' } })
    expect(await client.sandboxes.files.read({ sandboxId, path })).toEqual({ path, content: 'ein\nzwei\n' })
    expect(await client.sandboxes.files.read({ sandboxId, path: '/tmp/b' })).toEqual({ path: '/tmp/b', content: '' })
  })

  test('clones a repository that wants a password', async () => {
    const inside = {
      write: (path: string, content: string) => client.sandboxes.files.write({ sandboxId, files: { [path]: content } }),
      run: (command: string) => client.sandboxes.exec({ sandboxId, command }),
    }
    await serveGit(inside, 's3cret')
    const url = `${gitUrl}/private/secret.git`
    const clone = { sandboxId, url, token: 's3cret', depth: 1 }
    expect(await client.sandboxes.git.clone({ ...clone, path: '/home/user/one' })).toEqual({
      path: '/home/user/one',
      branch: 'main',
    } as { path: string })
    expect((await client.sandboxes.git.clone({ sandboxId, url, token: 's3cret' })).path).toBe('/home/user/repo')
    const command = 'cat one/file; git -C one log --oneline | wc -l; git -C repo log --oneline | wc -l'
    expect((await client.sandboxes.exec({ sandboxId, command })).stdout).toBe('3\n1\n3\n')
    const searched = await client.sandboxes.exec({ sandboxId, command: 'grep -r s3cret one repo; env | grep s3cret' })
    expect(searched.stdout).toBe('')
    const denied = client.sandboxes.git.clone({ ...clone, token: 'wrong', path: '/home/user/two' })
    await expect(denied).rejects.toThrow('Authentication failed')
  })

  test('makes, lists, gets and deletes threads', async () => {
    const { id } = await client.sandboxes.create({ agent })
    const first = await client.threads.create({ sandboxId: id, name: 'first' })
    const second = await client.threads.create({ sandboxId: id })
    expect([first.name, first.status]).toEqual(['first', 'active'])
    expect((await client.threads.list({ sandboxId: id })).map(thread => [thread.id, thread.name])).toEqual([
      [second.id, null],
      [first.id, 'first'],
    ])
    expect((await client.sandboxes.get(id)).threads.map(thread => thread.id)).toEqual([second.id, first.id])
    expect(await client.threads.get({ sandboxId: id, threadId: first.id })).toMatchObject({ ...first, messages: [] })
    expect(await client.threads.delete({ sandboxId: id, threadId: first.id })).toBeUndefined()
    expect(await client.threads.list({ sandboxId: id })).toHaveLength(1)
    await client.sandboxes.delete(id)
  })

  test('runs an agent, reads its reply to the end, and goes on in the same thread', async () => {
    const run = await client.threads.run({ agent, messages: say('good morning'), name: 'greetings' })
    const chunks = await readChunks(run.response)
    expect(typesIn(chunks)).toEqual([
      'start',
      'text-start',
      'text-delta',
      'text-delta',
      'text-end',
      'message-metadata',
      'finish',
    ])
    expect(textIn(chunks)).toBe('good morning')
    expect(run.resumeUrl).toBe(`${server.url}/v1/chat/echo/${run.sandboxId}/stream`)
    const { sandboxId, threadId } = run
    const next = await client.threads.run({ agent, messages: say('$ echo $((6 * 7))'), sandboxId, threadId })
    expect((await readChunks(next.response)).find(({ type }) => type === 'tool-output-available')?.output).toBe('42\n')
    const thread = await client.threads.get({ sandboxId, threadId })
    expect(thread).toMatchObject({ name: 'greetings', status: 'completed' })
    expect((thread.messages as any[]).map(({ role, content }) => [role, content])).toEqual([
      ['user', 'good morning'],
      ['assistant', 'good morning'],
      ['user', '$ echo $((6 * 7))'],
      ['assistant', ''],
    ])
    await client.sandboxes.delete(sandboxId)
  })

  test('resumes a reply by its resume URL', async () => {
    const run = await client.threads.run({ agent, messages: say('/slow 60'), sandboxId })
    const again = await fetch(run.resumeUrl, { headers: { authorization: `Bearer ${server.key}` } })
    const [first, second] = await Promise.all([readChunks(run.response), readChunks(again)])
    expect(second).toEqual(first)
    expect(textIn(first)).toEndWith(' 59 60 ')
  })

  test('makes a token that is good for its agent and end user alone, and makes none itself', async () => {
    const { token, expiresAt } = await client.tokens.create({ agent, userId: 'ada', expiresIn: '15m' })
    expect(Math.abs(Date.parse(expiresAt) - Date.now() - 15 * 60_000)).toBeLessThan(60_000)
    const browser = new Client({ apiKey: token, baseUrl: server.url })
    const run = await browser.threads.run({ agent, messages: say('hello') })
    expect(textIn(await readChunks(run.response))).toBe('hello')
    await expect(browser.sandboxes.get(sandboxId)).rejects.toThrow('There is no such sandbox.')
    await expect(browser.threads.run({ agent: 'other', messages: say('x') })).rejects.toThrow('not for this agent')
    await expect(browser.tokens.create()).rejects.toThrow('A token cannot make tokens')
    await client.sandboxes.delete(run.sandboxId)
  })
})

describe('@21st-sdk/node 0.1.1, beyond what the others have', () => {
  let client: InstanceType<typeof Client011>
  let sandboxId: string
  beforeAll(async () => {
    client = new Client011({ apiKey: server.key, baseUrl: server.url })
    sandboxId = (await client.sandboxes.create({ agent, timeoutMs: 600_000 })).id
  })

  test('looks at files and moves them', async () => {
    const { files } = client.sandboxes
    expect(await files.makeDir({ sandboxId, path: '/srv/deep' })).toBe(true)
    expect(await files.makeDir({ sandboxId, path: '/srv/deep' })).toBe(false)
    await files.write({ sandboxId, files: { '/srv/a.txt': 'abc', '/srv/deep/b.txt': '' } })
    const info = await files.getInfo({ sandboxId, path: '/srv/a.txt' })
    expect(info).toEqual({
      name: 'a.txt',
      path: '/srv/a.txt',
      type: 'file',
      size: 3,
      mode: 0o644,
      permissions: '-rw-r--r--',
      owner: 'root',
      group: 'root',
      modifiedTime: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    const pathsAt = async (depth?: number) => {
      const entries = await files.list({ sandboxId, path: '/srv', ...(depth && { depth }) })
      return entries.map(({ path, type }) => `${type} ${path}`).sort()
    }
    expect(await pathsAt()).toEqual(['dir /srv/deep', 'file /srv/a.txt'])
    expect(await pathsAt(2)).toEqual(['dir /srv/deep', 'file /srv/a.txt', 'file /srv/deep/b.txt'])
    const moved = await files.rename({ sandboxId, oldPath: '/srv/a.txt', newPath: '/srv/c.txt' })
    expect(moved).toMatchObject({ name: 'c.txt', path: '/srv/c.txt', size: 3 })
    expect(await files.exists({ sandboxId, path: '/srv/a.txt' })).toBe(false)
    expect(await files.exists({ sandboxId, path: '/srv/c.txt' })).toBe(true)
    expect(await files.remove({ sandboxId, path: '/srv' })).toBeUndefined()
    await expect(files.getInfo({ sandboxId, path: '/srv' })).rejects.toThrow('No such file')
  })

  test('runs an agent in the background and finds the reply in the thread', async () => {
    const run = await client.threads.run({ agent, messages: say('/slow 60'), sandboxId, mode: 'background' })
    expect(run).toEqual({ sandboxId, threadId: idOf('thr'), status: 'running' })
    const read = () => client.threads.get({ sandboxId, threadId: run.threadId })
    expect((await read()).status).toBe('streaming')
    await until(async () => (await read()).status !== 'streaming')
    const thread = await read()
    expect(thread).toMatchObject({ status: 'completed', error: null, completedAt: expect.stringMatching(/Z$/) })
    expect(thread.usage).toEqual({
      inputTokens: 2,
      outputTokens: 60,
      totalTokens: 62,
      totalCostUsd: 0,
      durationMs: expect.any(Number),
    })
    expect((thread.messages as any[]).map(({ content }) => content)).toEqual([
      '/slow 60',
      expect.stringMatching(/^1 2 .* 60 $/),
    ])
  })

  test('passes options that the agent has no use for', async () => {
    const systemPrompt = { type: 'preset', preset: 'claude_code', append: 'Be brief.' } as const
    const options = { model: 'some-model', systemPrompt, maxTurns: 3, maxBudgetUsd: 1.5, disallowedTools: ['Write'] }
    const { response } = await client.threads.run({ agent, messages: say('hi'), sandboxId, options })
    expect(textIn(await readChunks(response))).toBe('hi')
  })
})
