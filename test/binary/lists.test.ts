import { describe, expect, test } from 'bun:test'
import { openTerminal } from '../agent/terminal.ts'
import { command, useServer } from '../support/server.ts'

const server = useServer()

const environment = () => ({ THREADBOX_API_KEY: server.key, THREADBOX_URL: server.url })
const threadbox = (...args: string[]) => command(args, { env: environment() })
/** What a command printed, after it has ended well. */
async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await threadbox(...args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

describe('threadbox sandboxes and threads', () => {
  test('list, show and remove what the server has', async () => {
    await (await server.chat('Hello\u001b[2J there')).text()
    const { sandboxes } = (await server.ask('GET', '/v1/sandboxes')).body
    const [{ id }] = sandboxes
    expect(JSON.parse(await printed('sandboxes', 'list', '--json'))).toEqual(sandboxes)
    expect(await printed('sandboxes', 'list', '--quiet')).toBe(`${id}\n`)
    expect(await printed('sandboxes', 'list')).toStartWith(`${id}\techo\tactive\tnsjail\t`)

    const shown = await printed('sandboxes', 'show', id)
    const threads = (await server.ask('GET', `/v1/sandboxes/${id}/threads`)).body
    expect(shown).toContain(`id       ${id}\n`)
    expect(shown).toContain(`thread   ${threads[0].id} completed Hello [2J there\n`)
    expect(JSON.parse(await printed('sandboxes', 'show', id, '--json'))).toMatchObject({ id, provider: 'nsjail' })

    expect(JSON.parse(await printed('threads', 'list', id, '--json'))).toEqual(threads)
    expect(await printed('threads', 'list', id, '--quiet')).toBe(`${threads[0].id}\n`)
    expect(await printed('threads', 'show', id, threads[0].id)).toBe(
      'user › Hello[2J there\nassistant › Hello[2J there\n',
    )
    const detail = JSON.parse(await printed('threads', 'show', id, threads[0].id, '--json'))
    expect(detail.messages).toHaveLength(2)

    const other = await server.sandbox()
    expect(await printed('sandboxes', 'remove', id, other)).toBe(`${id} is removed.\n${other} is removed.\n`)
    expect(await printed('sandboxes', 'list', '--json')).toBe('[]\n')
  })

  test('take, list and remove snapshots, and fork', async () => {
    const id = await server.sandbox()
    const snapshot = (await printed('snapshots', 'create', id, '--quiet')).trim()
    expect(await printed('snapshots', 'create', id, '--name', 'kept')).toMatch(
      /^snap_\S+ has the files of sbx_\S+, \d+\.\d MB\. It was frozen for \d+ ms \((copy|reflink|layers)\)\.\n$/,
    )
    const { snapshots } = (await server.ask('GET', '/v1/snapshots')).body
    expect(JSON.parse(await printed('snapshots', 'list', '--json'))).toEqual(snapshots)
    expect(await printed('snapshots', 'list', id)).toContain(`\tkept\t${id}\techo\tnsjail\t`)
    expect(await printed('snapshots', 'list', '--quiet')).toContain(`${snapshot}\n`)
    const taken = await threadbox('snapshots', 'create', id, '--name', 'kept')
    expect([taken.code, taken.stderr]).toEqual([1, expect.stringContaining('this name already')])
    expect(await printed('snapshots', 'remove', snapshot, 'kept')).toBe(`${snapshot} is removed.\nkept is removed.\n`)
    expect(await printed('snapshots', 'list', '--json')).toBe('[]\n')

    const forks = (await printed('sandboxes', 'fork', id, '--count', '2', '--quiet')).trim().split('\n')
    const listed = (await printed('sandboxes', 'list', '--quiet')).trim().split('\n')
    expect([forks.length, [...forks, id].sort()]).toEqual([2, listed.sort()])
    await (await server.chat('Hello there', { sandboxId: id })).text()
    const [thread] = (await server.ask('GET', `/v1/sandboxes/${id}/threads`)).body
    const [line = ''] = (await printed('sandboxes', 'fork', id, '--thread', thread.id)).split('\n')
    const [fork = '', copy = ''] = line.split('\t')
    expect(await printed('threads', 'show', fork, copy)).toContain('assistant › Hello there\n')
    const { code, stderr } = await threadbox('sandboxes', 'fork', id, '--count', 'many')
    expect([code, stderr]).toEqual([2, expect.stringContaining('--count: must be a number from 1 to 100')])
    await printed('sandboxes', 'remove', id, fork, ...forks)
  })

  test('a list has more than one page', async () => {
    const page = { sandboxes: [], nextBefore: 'sbx_2' as string | null }
    using paged = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: request => {
        const before = new URL(request.url).searchParams.get('before')
        const row = {
          id: before ?? 'sbx_9',
          agent: { slug: 'echo' },
          status: 'active',
          provider: 'x',
          createdAt: '',
          updatedAt: '',
        }
        return Response.json({ ...page, sandboxes: [row], ...(before && { nextBefore: null }) })
      },
    })
    const env = { ...environment(), THREADBOX_URL: paged.url.origin }
    expect((await command(['sandboxes', 'list', '--quiet'], { env })).stdout).toBe('sbx_9\nsbx_2\n')
  })

  test('in a terminal a list has titles', async () => {
    const id = await server.sandbox()
    await using screen = openTerminal(['sandboxes', 'list'], environment())
    await screen.shows('ID ')
    await screen.shows('AGENT  STATUS  BACKEND  ISOLATION   CREATED')
    await screen.shows(`${id}  echo   active  nsjail   namespaces  2`)
    expect(await screen.exited).toBe(0)
    expect(await printed('sandboxes', 'remove', id, '--quiet')).toBe('')
  })

  test.each([
    ['a sandbox that is not there', ['sandboxes', 'show', 'sbx_none'], 1, /sandbox/i],
    ['no sandbox', ['sandboxes', 'remove'], 2, /SANDBOX… is missing/],
    ['what is no id', ['sandboxes', 'remove', '..'], 2, /SANDBOX must be an id/],
    ['a thread that is not there', ['threads', 'show', 'sbx_none', 'thr_none'], 1, /sandbox/i],
    ['no thread', ['threads', 'show', 'x'], 2, /THREAD is missing/],
  ])('say so for %s', async (_, args, code, said) => {
    const result = await threadbox(...args)
    expect([result.code, result.stdout]).toEqual([code, ''])
    expect(result.stderr).toMatch(said)
  })
})

describe('every list has --json and --quiet', () => {
  const data = () => ['--data-dir', server.dataDirectory]

  test('keys', async () => {
    const key = (await printed('keys', 'create', '--name', 'ci', '--quiet', ...data())).trim()
    expect(key).toMatch(/^tbx_\S+$/)
    const rows = JSON.parse(await printed('keys', 'list', '--json', ...data()))
    const [row] = rows
    expect(rows).toEqual([expect.objectContaining({ name: 'ci', team: 'default', hint: key.slice(-4) })])
    expect(await printed('keys', 'list', '--quiet', ...data())).toBe(`${row.id}\n`)
    expect(JSON.stringify(rows)).not.toContain(key)
    expect(await printed('keys', 'revoke', row.id, '--quiet', ...data())).toBe('')
  })

  test('agents', async () => {
    const rows = JSON.parse(await printed('agents', 'list', '--json', ...data()))
    expect(rows).toContainEqual({ slug: 'echo', name: 'Echo', engine: 'echo', model: null })
    expect(await printed('agents', 'list', '--quiet', ...data())).toBe(
      rows.map(({ slug }: { slug: string }) => `${slug}\n`).join(''),
    )
  })

  test('bases', async () => {
    expect(await printed('base', 'list', '--json', ...data())).toBe('[]\n')
  })
})
