import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CommandResult, command, useServer } from '../support/server.ts'
import { readChunks, textIn } from '../support/sse.ts'

const server = useServer()

/** A command beside the running server. */
const beside = (...args: string[]): Promise<CommandResult> => command([...args, '--data-dir', server.dataDirectory])

const statusWith = async (key: string) => (await server.ask('GET', '/v1/sandboxes', undefined, { key })).status

test('a key that is made is good at once, and one that is revoked is not', async () => {
  const made = await beside('keys', 'create', '--name', 'of a test', '--expires-in', '30d')
  expect([made.code, made.stderr]).toEqual([0, ''])
  const [id = '', key = '', remark] = made.stdout.trimEnd().split('\n')
  expect([id, key, remark]).toEqual([
    expect.stringMatching(/^key_/),
    expect.stringMatching(/^tbx_.{40}$/),
    `It is shown only now, and is for servers on ${server.dataDirectory}.`,
  ])
  expect(await statusWith(key)).toBe(200)

  const listed = (await beside('keys', 'list')).stdout.split('\n').find(line => line.startsWith(id))
  expect(listed).toContain(`\tdefault\tof a test\t…${key.slice(-4)}\t`)
  expect(listed).toMatch(/\texpires \d{4}-/)
  expect((await beside('keys', 'list')).stdout).not.toContain(key)

  expect(await beside('keys', 'revoke', id)).toEqual({ code: 0, stdout: `${id} is revoked.\n`, stderr: '' })
  expect(await statusWith(key)).toBe(401)
  expect((await beside('keys', 'list')).stdout).toMatch(new RegExp(`^${id}\t.*\trevoked \\d{4}-`, 'm'))
  expect((await beside('keys', 'revoke', id)).code).toBe(2)
})

test('a team has its own keys, agents and sandboxes', async () => {
  const { stdout } = await beside('keys', 'create', '--team', 'other')
  const key = stdout.split('\n')[1]!
  const sandboxId = await server.sandbox()
  expect((await server.ask('GET', `/v1/sandboxes/${sandboxId}`, undefined, { key })).status).toBe(404)
  writeFileSync(join(server.dataDirectory, '../theirs.json'), JSON.stringify({ slug: 'theirs' }))
  await beside('agents', 'apply', join(server.dataDirectory, '../theirs.json'), '--team', 'other')
  expect((await server.ask('POST', '/v1/sandboxes', { agent: 'theirs' })).status).toBe(404)
  const { status, body } = await server.ask('POST', '/v1/sandboxes', { agent: 'theirs' }, { key })
  expect(status).toBe(201)
  expect((await server.ask('DELETE', `/v1/sandboxes/${body.id}`, undefined, { key })).status).toBe(204)
})

test('an agent of a file is there at once, with its sandbox, until it is removed', async () => {
  const file = join(server.dataDirectory, '../coder.json')
  const sandbox = {
    files: { '/srv/motto.txt': 'measure twice' },
    envs: { TOKEN: 'sesame' },
    setup: ['cp /srv/motto.txt copy.txt'],
    cwd: '/srv',
    limits: { memoryMb: 512 },
  }
  writeFileSync(file, JSON.stringify({ slug: 'coder', name: 'Coder', model: 'parrot-1', sandbox }))
  expect(await beside('agents', 'apply', file)).toEqual({
    code: 0,
    stdout: `coder is applied in ${server.dataDirectory}.\n`,
    stderr: '',
  })
  expect((await beside('agents', 'list')).stdout).toBe('coder\tCoder\techo\tparrot-1\necho\tEcho\techo\t-\n')
  const shown = await beside('agents', 'show', 'coder')
  expect(JSON.parse(shown.stdout)).toMatchObject({ slug: 'coder', sandbox: { ...sandbox, envs: { TOKEN: '***' } } })
  expect(shown.stdout).not.toContain('sesame')

  const sandboxId = await server.sandbox({ agent: 'coder' })
  expect((await server.exec(sandboxId, 'pwd; cat copy.txt; echo " $TOKEN"')).stdout).toBe(
    '/srv\nmeasure twice sesame\n',
  )
  const messages = [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }]
  const say = () => server.request('POST', '/v1/chat/coder', { body: { messages, sandboxId } })
  const chunks = await readChunks(await say())
  expect(textIn(chunks)).toBe('hello')
  expect(chunks.find(({ type }) => type === 'message-metadata').messageMetadata.model).toBe('parrot-1')

  expect((await beside('agents', 'remove', 'coder')).stdout).toBe('coder is removed. Its sandboxes stay.\n')
  expect((await say()).status).toBe(404)
  expect((await server.ask('POST', '/v1/sandboxes', { agent: 'coder' })).body.error.code).toBe('agent_not_found')
  expect((await server.exec(sandboxId, 'cat copy.txt')).stdout).toBe('measure twice')
})

test('a directory of agents is applied whole, or not at all', async () => {
  const directory = join(server.dataDirectory, '../agents')
  mkdirSync(directory)
  const put = (name: string, agent: object | string) =>
    writeFileSync(join(directory, name), typeof agent === 'string' ? agent : JSON.stringify(agent))
  put('a.json', { slug: 'agent-a' })
  put('b.json', { slug: 'Not A Slug' })
  put('c.json', '{"slug":')
  put('notes.txt', 'no agent')
  const refused = await beside('agents', 'apply', directory)
  expect([refused.code, refused.stdout]).toEqual([1, ''])
  expect(refused.stderr).toContain(`${directory}/b.json: slug: `)
  expect(refused.stderr).toContain(`${directory}/c.json: `)
  expect((await beside('agents', 'list')).stdout).not.toContain('agent-a')
  put('b.json', { slug: 'agent-b' })
  put('c.json', { slug: 'agent-c' })
  expect((await beside('agents', 'apply', directory)).stdout).toBe(
    ['a', 'b', 'c'].map(name => `agent-${name} is applied in ${server.dataDirectory}.\n`).join(''),
  )
})

test('a secret that is set from the standard input is used at once, by its team alone, until it is removed', async () => {
  const set = (input: string | Uint8Array, ...args: string[]) =>
    command(['secrets', 'set', ...args, '--data-dir', server.dataDirectory], { stdin: Buffer.from(input) })
  const secrets = [{ secret: 'GITHUB', hosts: ['github.com'], as: { env: 'GITHUB_TOKEN' } }]
  const create = async () => (await server.ask('POST', '/v1/sandboxes', { agent: 'echo', secrets })).status
  expect(await create()).toBe(400)
  expect(await set('of another team\n', 'GITHUB', '--team', 'elsewhere')).toMatchObject({ code: 0 })
  expect(await create()).toBe(400)
  // Its line end is none of it: a value of two lines would fit no variable.
  expect(await set('ghp_sesame\r\n', 'GITHUB')).toEqual({ code: 0, stdout: 'GITHUB is set.\n', stderr: '' })
  expect(await create()).toBe(201)

  const listed = (await beside('secrets', 'list')).stdout
  expect(listed).toMatch(/^GITHUB\t\d{4}-\S+Z\t-\t1\n$/)
  expect((await beside('secrets', 'list', '--json')).stdout).not.toContain('sesame')
  expect((await beside('secrets', 'list', '--team', 'elsewhere', '--quiet')).stdout).toBe('GITHUB\n')

  expect(await beside('secrets', 'remove', 'GITHUB')).toEqual({ code: 0, stdout: 'GITHUB is removed.\n', stderr: '' })
  expect(await create()).toBe(400)
  expect((await beside('secrets', 'remove', 'GITHUB')).code).toBe(2)
  for (const wrong of ['', 'abc\n', new Uint8Array([97, 98, 99, 100, 0xff]), 'x'.repeat(200_000)]) {
    const { code, stderr } = await set(wrong, 'WRONG')
    expect([code === 0, stderr]).toEqual([false, expect.stringMatching(/value/)])
  }
  expect((await set('good value', 'not a name')).code).toBe(2)
  expect((await beside('secrets', 'list')).stdout).toBe('')
})
