import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { processesNamed } from '../support/leftovers.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})

const MiB = 1024 * 1024
const files = (method: string, rest: string, body?: unknown) =>
  app.ask(method, `/v1/sandboxes/${id}/files${rest}`, body)
const at = (path: string) => `?path=${encodeURIComponent(path)}`
const shell = (command: string) => app.shell(id, command)

describe('write', () => {
  const bodies: [string, unknown, { path: string; size: number }[]][] = [
    [
      '{files: [{path, content}]}',
      {
        files: [
          { path: '/w/list/a', content: 'a' },
          { path: '/w/list/ü', content: 'ü' },
        ],
      },
      [
        { path: '/w/list/a', size: 1 },
        { path: '/w/list/ü', size: 2 },
      ],
    ],
    [
      '{files: {path: content}}',
      { files: { '/w/map/a': 'A', '/w/map/b': '' } },
      [
        { path: '/w/map/a', size: 1 },
        { path: '/w/map/b', size: 0 },
      ],
    ],
    ['{path, content}', { path: '/w/one', content: 'one' }, [{ path: '/w/one', size: 3 }]],
    ['{path, content} beside no files', { files: null, path: '/w/two', content: 'two' }, [{ path: '/w/two', size: 3 }]],
    ['no files at all', { files: [] }, []],
  ]
  for (const [name, body, written] of bodies) {
    test(`takes ${name}`, async () => {
      const answer = await files('POST', '', body)
      expect(answer.status).toBe(200)
      expect(answer.body).toEqual({ files: written })
      for (const { path, size } of written) expect(await shell(`wc -c < '${path}'`)).toBe(`${size}\n`)
    })
  }

  for (const list of [[null], [[]], ['/w/x'], 'x', 1]) {
    test(`refuses files that are ${JSON.stringify(list)} beside {path, content}`, async () => {
      expect(codeOf(await files('POST', '', { files: list, path: '/w/x', content: 'x' }))).toBe('400 invalid_request')
    })
  }

  test('keeps text as it is', async () => {
    const content = '\ufefftabs\t, "quotes", \\ back, \r\n lines, nul \0 inside, 漢字 🎉\n\n'
    await files('POST', '', { path: '/w/text', content })
    expect((await files('GET', at('/w/text'))).body).toEqual({ path: '/w/text', content })
  })

  test('replaces what is there, shorter too, and keeps its mode', async () => {
    await shell('echo a long old content > /w/old; chmod 750 /w/old')
    await files('POST', '', { path: '/w/old', content: 'new' })
    expect(await shell('cat /w/old; stat -c %a /w/old')).toBe('new750\n')
  })

  test('makes parents, and takes odd names', async () => {
    const path = "/w/a b/'q'/$(touch x)/-rf/ä\n*/%2e%2e/f"
    const answer = await files('POST', '', { path, content: 'odd' })
    expect(answer.body).toEqual({ files: [{ path, size: 3 }] })
    expect((await files('GET', at(path))).body).toEqual({ path, content: 'odd' })
    expect(await shell('ls -d /x /home/user/x 2>/dev/null || echo none')).toBe('none\n')
  })

  const refused: [string, string, string][] = [
    ['onto a directory', '/etc', '400 invalid_request'],
    ['below a file', '/etc/hosts/x', '400 invalid_request'],
    ['to a device', '/dev/null', '400 invalid_request'],
    ['to a FIFO', '/w/fifo', '400 invalid_request'],
    ['where all is read-only', '/usr/bin/x', '400 invalid_request'],
  ]
  for (const [name, path, expected] of refused) {
    test(`${name} is refused at once`, async () => {
      await shell('mkdir -p /w; [ -p /w/fifo ] || mkfifo /w/fifo')
      expect(codeOf(await files('POST', '', { path, content: 'x' }))).toBe(expected)
      expect(codeOf(await files('POST', `${at(path)}&format=blob`, new Blob(['x'])))).toBe(expected)
    })
  }

  test('takes 9 MB of text in one body', async () => {
    const content = 'x'.repeat(9_000_000)
    expect((await files('POST', '', { path: '/w/large', content })).body).toEqual({
      files: [{ path: '/w/large', size: 9_000_000 }],
    })
    expect((await files('GET', at('/w/large'))).body.content.length).toBe(9_000_000)
  })
})

describe('read', () => {
  beforeAll(async () => {
    await shell(`mkdir -p /r/dir && cd /r && echo text > file && mkfifo fifo && truncate -s 10G sparse
      ln -s /etc/passwd passwd && ln -s file link && ln -s loop loop && ln -s /nowhere dangling
      ln -s ../../../../../../../../etc/passwd up && ln -s /proc/1/root/etc/passwd root
      python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/r/socket")'
      printf 'secret' > closed && chmod 0 closed`)
  })

  const refused: [string, string, string][] = [
    ['a missing file', '/r/missing', '404 file_not_found'],
    ['what is below a missing directory', '/r/no/such', '404 file_not_found'],
    ['a dangling link', '/r/dangling', '404 file_not_found'],
    ['what is below a file', '/r/file/x', '404 file_not_found'],
    ['a directory', '/r/dir', '400 invalid_request'],
    ['the root', '/', '400 invalid_request'],
    ['a FIFO', '/r/fifo', '400 invalid_request'],
    ['a socket', '/r/socket', '400 invalid_request'],
    ['a device without end', '/dev/zero', '400 invalid_request'],
    ['a terminal', '/dev/tty', '400 invalid_request'],
    ['a link to itself', '/r/loop', '400 invalid_request'],
    ['10 GB of a sparse file as text', '/r/sparse', '413 payload_too_large'],
    ['a name that is too long', `/r/${'x'.repeat(300)}`, '400 invalid_request'],
  ]
  for (const [name, path, expected] of refused) {
    test(`${name} is refused at once`, async () => {
      const startMs = performance.now()
      const answer = await files('GET', at(path))
      expect(codeOf(answer)).toBe(expected)
      expect(answer.body.message).toBe(answer.body.error.message)
      expect(performance.now() - startMs).toBeLessThan(20_000)
      if (!path.includes('sparse')) expect(codeOf(await files('GET', `${at(path)}&format=blob`))).toBe(expected)
    })
  }

  test('a file of /proc, whose size is said to be 0, is read', async () => {
    expect((await files('GET', at('/proc/meminfo'))).body.content).toContain('MemTotal:')
  })

  test('an endless file of /proc or a large one is cut off with an error, not read for ever', async () => {
    expect(codeOf(await files('GET', at('/proc/kmsg')))).toMatch(/^4/)
  })

  test('root of the sandbox reads what forbids it', async () => {
    expect((await files('GET', at('/r/closed'))).body.content).toBe('secret')
  })

  for (const path of ['/r/passwd', '/r/up', '/r/root', '/../../../../etc/passwd', '/home/user/../../../etc/passwd']) {
    test(`${path} leads to the sandbox's own /etc/passwd`, async () => {
      const marker = crypto.randomUUID()
      await shell(`echo '${marker}:x:12345:0::/:/bin/sh' >> /etc/passwd`)
      const { body } = await files('GET', at(path))
      expect(body.content).toContain(marker)
      expect(await Bun.file('/etc/passwd').text()).not.toContain(marker)
    })
  }

  test('a link that a race turns to the host still leads inside', async () => {
    const marker = `flip-${crypto.randomUUID()}`
    await shell(`mkdir -p /race/in && echo inside > /race/in/passwd
      exec -a ${marker} bash -c 'cd /race; while :; do ln -sfn in dir; ln -sfn /etc dir; done' >/dev/null 2>&1 &`)
    const host = await Bun.file('/etc/passwd').text()
    for (let n = 0; n < 50; n++) {
      const { status, body } = await files('GET', at('/race/dir/passwd'))
      expect(status).toBeOneOf([200, 404])
      expect(body.content).not.toBe(host)
    }
    await app.exec(id, `pkill -f ${marker}; true`)
    await until(() => processesNamed(marker).length === 0)
  })
})

describe('list, info, exists, mkdir, rename, delete', () => {
  test('list gives the entries of a directory by path, as deep as asked', async () => {
    await shell('mkdir -p /l/a/b/c && touch /l/z /l/a/y /l/a/b/x && ln -s a /l/link')
    const listed = async (depth: string) =>
      (await files('GET', `/list${at('/l')}${depth}`)).body.map((e: any) => e.path)
    expect(await listed('')).toEqual(['/l/a', '/l/link', '/l/z'])
    expect(await listed('&depth=2')).toEqual(['/l/a', '/l/a/b', '/l/a/y', '/l/link', '/l/z'])
    expect(await listed('&depth=9')).toHaveLength(7)
  })

  test('info has every field', async () => {
    await shell('mkdir -p /i && printf 12345 > /i/f && chmod 640 /i/f && touch -d 2020-01-02T03:04:05Z /i/f')
    expect((await files('GET', `/info${at('/i/f')}`)).body).toEqual({
      name: 'f',
      path: '/i/f',
      type: 'file',
      size: 5,
      mode: 0o640,
      permissions: '-rw-r-----',
      owner: 'root',
      group: 'root',
      modifiedTime: '2020-01-02T03:04:05.000Z',
    })
  })

  test('info of a link tells of its target', async () => {
    await shell('mkdir -p /i/d && ln -sfn d /i/to-d && ln -sfn nothing /i/to-nothing')
    expect((await files('GET', `/info${at('/i/to-d')}`)).body).toMatchObject({ type: 'dir', symlinkTarget: 'd' })
    expect((await files('GET', `/info${at('/i/to-nothing')}`)).body).toMatchObject({ symlinkTarget: 'nothing' })
    expect((await files('GET', `/info${at('/')}`)).body).toMatchObject({ type: 'dir', path: '/' })
  })

  test('exists is a bare true or false', async () => {
    const answers = await Promise.all(
      ['/etc', '/etc/hosts', '/etc/hosts/x', '/missing'].map(path => files('GET', `/exists${at(path)}`)),
    )
    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [200, true],
      [200, true],
      [200, false],
      [200, false],
    ])
    expect(answers[0]!.headers.get('content-type')).toContain('application/json')
  })

  test('mkdir is a bare true when it made one, false when it was there', async () => {
    const make = async () => (await files('POST', '/mkdir', { path: '/m/a/b' })).body
    expect(await make()).toBe(true)
    expect(await make()).toBe(false)
    expect(await shell('stat -c %F /m/a/b')).toBe('directory\n')
  })

  test('rename moves files and directories, makes parents, and tells of the new place', async () => {
    await shell('mkdir -p /n/d && echo 1 > /n/d/f')
    const { status, body } = await files('POST', '/rename', { oldPath: '/n/d', newPath: '/n/x/y/e' })
    expect(status).toBe(200)
    expect(body).toMatchObject({ name: 'e', path: '/n/x/y/e', type: 'dir' })
    expect(await shell('cat /n/x/y/e/f; ls /n')).toBe('1\nx\n')
  })

  test('delete takes a file, a link but not its target, and a directory with all in it', async () => {
    await shell('mkdir -p /d/dir/in && touch /d/file /d/dir/in/f /d/target && ln -s target /d/link')
    for (const path of ['/d/file', '/d/dir', '/d/link']) {
      const { status, body } = await files('DELETE', at(path))
      expect({ status, body }).toEqual({ status: 204, body: '' })
    }
    expect(await shell('ls /d')).toBe('target\n')
  })

  const refused: [string, string, string, unknown, string][] = [
    ['list of a missing directory', 'GET', `/list${at('/missing')}`, undefined, '404 file_not_found'],
    ['list of a file', 'GET', `/list${at('/etc/hosts')}`, undefined, '400 invalid_request'],
    ['info of a missing file', 'GET', `/info${at('/missing')}`, undefined, '404 file_not_found'],
    ['mkdir below a file', 'POST', '/mkdir', { path: '/etc/hosts/x' }, '404 file_not_found'],
    ['mkdir onto a file', 'POST', '/mkdir', { path: '/etc/hosts' }, '400 invalid_request'],
    ['rename of a missing file', 'POST', '/rename', { oldPath: '/missing', newPath: '/x' }, '404 file_not_found'],
    ['rename into itself', 'POST', '/rename', { oldPath: '/home', newPath: '/home/x' }, '400 invalid_request'],
    [
      'rename to another file system',
      'POST',
      '/rename',
      { oldPath: '/etc/motd-x', newPath: '/dev/shm/m' },
      '400 invalid_request',
    ],
    ['delete of a missing file', 'DELETE', at('/missing'), undefined, '404 file_not_found'],
    ['delete of what is mounted', 'DELETE', at('/proc'), undefined, '400 invalid_request'],
    ['delete of what is read-only', 'DELETE', at('/usr/bin/git'), undefined, '400 invalid_request'],
  ]
  for (const [name, method, rest, body, expected] of refused) {
    test(`${name} is refused`, async () => {
      await shell('touch /etc/motd-x')
      expect(codeOf(await files(method, rest, body))).toBe(expected)
    })
  }

  test('a directory with too many entries is refused, not cut', async () => {
    await shell('mkdir /many && cd /many && seq 10001 | xargs touch')
    expect(codeOf(await files('GET', `/list${at('/many')}`))).toBe('400 invalid_request')
  })
})

test(`text that is larger than a body may be is refused with a hint how to read it`, async () => {
  await shell(`truncate -s ${10 * MiB + 1} /over`)
  const { body } = await files('GET', at('/over'))
  expect(body.message).toContain('format=stream')
})
