import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openTestSandbox, type TestSandbox } from '../../support/sandbox.ts'
import { errorOf, toolsIn, type UseTool } from './tools.ts'

let sandbox: TestSandbox
let use: UseTool
beforeAll(async () => {
  sandbox = await openTestSandbox()
  use = await toolsIn(sandbox)
}, 60_000)
afterAll(() => sandbox.close(), 60_000)

const put = (path: string, content: string | Uint8Array) => sandbox.environment.files.write(path, Buffer.from(content))
const get = async (path: string) =>
  Buffer.from(await new Response((await sandbox.environment.files.read(path)).body).bytes()).toString()

describe('Read', () => {
  const lines = Array.from({ length: 5000 }, (_, index) => `line ${index + 1}`).join('\n')
  const rows: [string, string, object, string][] = [
    ['numbers lines', 'a\nb\n', {}, '     1→a\n     2→b'],
    ['shows a last line without end', 'a\nb', {}, '     1→a\n     2→b'],
    ['keeps empty lines', '\n\nc', {}, '     1→\n     2→\n     3→c'],
    ['says that a file is empty', '', {}, '(The file is empty.)'],
    ['hides carriage returns', 'a\r\nb\r\n', {}, '     1→a\n     2→b'],
    ['begins and ends where it is told', lines, { offset: 4999, limit: 2 }, '  4999→line 4999\n  5000→line 5000'],
    [
      'says what it does not show',
      lines,
      { offset: 2, limit: 1 },
      '     2→line 2\n[Lines from 3 on are not shown. Use offset and limit.]',
    ],
    ['says how long a file is that is shorter', 'a\nb\n', { offset: 9 }, '(The file has only 2 lines.)'],
  ]
  test.each(rows)('%s', async (_, content, input, output) => {
    await put('/tmp/read', content)
    expect(await use('Read', { file_path: '/tmp/read', ...input })).toBe(output)
  })

  test('shows at most 2000 lines and 30,000 characters', async () => {
    await put('/tmp/read', 'x\n'.repeat(10_000))
    expect(String(await use('Read', { file_path: '/tmp/read' }))).toContain('Lines from 2001 on are not shown')
    await put('/tmp/read', `${'x'.repeat(5000)}\n`.repeat(100))
    const output = String(await use('Read', { file_path: '/tmp/read' }))
    expect(output.length).toBeLessThan(33_000)
    expect(output).toContain('x… [line cut]\n')
    expect(output).toContain('Cut at 30000 characters')
  })

  test('holds little of a line of 50 MB', async () => {
    await sandbox.shell('head -c 50000000 /dev/zero | tr "\\0" y > /tmp/wide')
    expect(String(await use('Read', { file_path: '/tmp/wide' })).length).toBeLessThan(2100)
  })

  test('finds a path from the working directory and the home', async () => {
    await put('/home/user/here.txt', 'here')
    expect(await use('Read', { file_path: 'here.txt' })).toBe('     1→here')
    expect(await use('Read', { file_path: '~/here.txt' })).toBe('     1→here')
  })

  test('shows an image, by what it is and not by its name', async () => {
    const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
    await put('/tmp/picture.txt', png)
    expect(await use('Read', { file_path: '/tmp/picture.txt' })).toEqual([
      { type: 'image', mediaType: 'image/png', data: png.toString('base64') },
    ])
    await put('/tmp/huge.png', Buffer.concat([png, Buffer.alloc(4_000_000)]))
    expect(await errorOf(use('Read', { file_path: '/tmp/huge.png' }))).toContain('Make it smaller')
  })

  test('refuses what is no text', async () => {
    await put('/tmp/binary', new Uint8Array([1, 0, 2]))
    expect(await errorOf(use('Read', { file_path: '/tmp/binary' }))).toBe('/tmp/binary is a binary file of 3 bytes.')
    expect(await errorOf(use('Read', { file_path: '/tmp/none' }))).toContain('/tmp/none')
    expect(await errorOf(use('Read', { file_path: '/tmp' }))).not.toBe('no error')
    expect(await errorOf(use('Read', {}))).toContain('file_path')
  })
})

describe('Write', () => {
  test('makes a file with its directories, then replaces it', async () => {
    const input = { file_path: '/srv/new/a.txt', content: 'ä\n' }
    expect(await use('Write', input)).toBe('File created successfully at: /srv/new/a.txt')
    expect(await get('/srv/new/a.txt')).toBe('ä\n')
    expect(await use('Write', { ...input, content: '' })).toBe('The file /srv/new/a.txt has been updated.')
    expect(await get('/srv/new/a.txt')).toBe('')
  })
})

describe('Edit', () => {
  const rows: [string, string, object, string][] = [
    ['replaces a string', 'one two', { old_string: 'two', new_string: '2' }, 'one 2'],
    ['takes dollar signs as they are', 'a b', { old_string: 'b', new_string: "$& $1 $'" }, "a $& $1 $'"],
    ['replaces all', 'a a a', { old_string: 'a', new_string: 'b', replace_all: true }, 'b b b'],
    ['removes', 'abc', { old_string: 'b', new_string: '' }, 'ac'],
    ['keeps the ends of lines', 'a\r\nb\r\n', { old_string: 'a\nb', new_string: 'a\nc' }, 'a\r\nc\r\n'],
    ['keeps a byte order mark', '\ufeffa', { old_string: 'a', new_string: 'b' }, '\ufeffb'],
  ]
  test.each(rows)('%s', async (_, content, input, after) => {
    await put('/tmp/edit', content)
    await use('Edit', { file_path: '/tmp/edit', ...input })
    expect(await get('/tmp/edit')).toBe(after)
  })

  test('shows what it changed', async () => {
    await put('/tmp/edit', Array.from({ length: 20 }, (_, index) => `l${index + 1}`).join('\n'))
    const output = await use('Edit', { file_path: '/tmp/edit', old_string: 'l10', new_string: 'ten' })
    expect(output).toBe(
      "The file /tmp/edit has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n" +
        '     6→l6\n     7→l7\n     8→l8\n     9→l9\n    10→ten\n    11→l11\n    12→l12\n    13→l13\n    14→l14',
    )
  })

  const failures: [string, string | Uint8Array, object, string][] = [
    ['what is not there', 'abc', { old_string: 'x', new_string: 'y' }, 'String to replace not found in file'],
    ['what is there twice', 'a a', { old_string: 'a', new_string: 'b' }, 'Found 2 matches'],
    ['no change', 'a', { old_string: 'a', new_string: 'a' }, 'No changes to make'],
    ['an empty string', 'a', { old_string: '', new_string: 'a' }, 'old_string is empty'],
    ['what is no UTF-8', new Uint8Array([97, 255]), { old_string: 'a', new_string: 'b' }, '/tmp/edit is not UTF-8'],
  ]
  test.each(failures)('refuses %s, and leaves the file', async (_, content, input, problem) => {
    await put('/tmp/edit', content)
    expect(await errorOf(use('Edit', { file_path: '/tmp/edit', ...input }))).toStartWith(problem)
    expect(await get('/tmp/edit')).toBe(Buffer.from(content).toString())
  })
})

describe('MultiEdit', () => {
  test('makes all edits, each on what the one before left', async () => {
    await put('/tmp/multi', 'a b')
    const edits = [
      { old_string: 'a', new_string: 'c' },
      { old_string: 'c b', new_string: 'd' },
    ]
    expect(String(await use('MultiEdit', { file_path: '/tmp/multi', edits }))).toStartWith('Applied 2 edits.')
    expect(await get('/tmp/multi')).toBe('d')
  })

  test('makes none when one fails', async () => {
    await put('/tmp/multi', 'a b')
    const edits = [
      { old_string: 'a', new_string: 'c' },
      { old_string: 'x', new_string: 'y' },
    ]
    expect(await errorOf(use('MultiEdit', { file_path: '/tmp/multi', edits }))).toStartWith('Edit 2 of 2: String')
    expect(await get('/tmp/multi')).toBe('a b')
  })
})

describe('LS', () => {
  test('lists a directory', async () => {
    await sandbox.shell('mkdir -p /srv/ls/d; touch /srv/ls/b /srv/ls/a.log; ln -s b /srv/ls/l')
    expect(await use('LS', { path: '/srv/ls', ignore: ['*.log'] })).toBe('- /srv/ls/\n  - b\n  - d/\n  - l -> b')
    expect(await use('LS', { path: '/srv/ls/d' })).toBe('/srv/ls/d is empty.')
    expect(await errorOf(use('LS', { path: '/srv/none' }))).not.toBe('no error')
  })
})

describe('TodoWrite', () => {
  test('takes a list and refuses what is none', async () => {
    const todos = [{ content: 'Run the tests', status: 'pending', activeForm: 'Running the tests' }]
    expect(String(await use('TodoWrite', { todos }))).toStartWith('Todos have been modified successfully.')
    expect(await errorOf(use('TodoWrite', { todos: [{ content: 'a', status: 'later' }] }))).toContain('todos.0.status')
  })
})
