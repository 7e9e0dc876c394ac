import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBases } from 'nsjail-wrapper'
import { type Member, tarOf } from '../support/tar.ts'

/** What `threadbox base` does to the data directory. test/binary/base.test.ts has the sandboxes on them. */

setDefaultTimeout(60_000)

const isRoot = process.getuid?.() === 0
const scratch = mkdtempSync(join(tmpdir(), 'threadbox-bases-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const newDirectory = (name: string) => mkdtempSync(join(scratch, `${name}-`))
const bin: Member = { name: './bin/', type: '5' }

async function* piecesOf(bytes: Uint8Array, size = 1000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size)
}

function sh(script: string, ...values: string[]): string {
  const { stdout, stderr, exitCode } = Bun.spawnSync(['sh', '-euc', script, 'sh', ...values])
  if (exitCode !== 0) throw new Error(stderr.toString())
  return stdout.toString()
}

describe('a tarball is unpacked as it was', () => {
  const source = newDirectory('source')
  const long = 'a-name-of-a-directory-that-is-rather-long'
  sh(
    `cd "$1"; mkdir -p bin usr/share "$2/$2/$2/$2/$2"; echo text >usr/share/file; ln usr/share/file usr/share/same
     ln -s /usr/share/file absolute; ln -s ../../../etc/passwd usr/share/up; echo 'echo ran' >bin/tool; chmod 4755 bin/tool
     head -c 3000000 /dev/urandom >usr/big; : >empty; echo x >"$2/$2/$2/$2/$2/ünd"; chmod 1777 usr/share
     ln -s "$2/$2/$2/$2/$2/$2/$2/$2" long-link; mkdir closed; echo x >closed/in; chmod 500 closed
     touch -d @1700000000.25 usr/share/file; touch -d @1600000000 "$2"`,
    source,
    long,
  )
  if (isRoot) sh('cd "$1"; chown 33:44 usr/share; chown 3000000:3000001 empty; chown -h 7:8 absolute', source)
  const listing = (root: string) =>
    sh(
      `cd "$1"; find . -printf '%p %y %m %U %G %n %Ts %l ' \\( -type f -exec sha1sum {} \\; -o -printf '\\n' \\) | sort`,
      root,
    )

  const formats = ['gnu', 'pax', 'ustar'].flatMap(format => ['cat', 'gzip', 'xz', 'zstd'].map(pack => [format, pack]))
  // What ustar cannot hold is left out of it.
  test.each(formats)('%s, by %s', async (format = '', pack = '') => {
    const from = format === 'ustar' ? newDirectory('small') : source
    if (format === 'ustar')
      sh('cd "$1"; mkdir bin; echo tool >bin/tool; ln bin/tool bin/same; ln -s tool bin/link', from)
    const packed = Bun.spawnSync([
      'sh',
      '-c',
      `tar -C "$1" --format=${format} --numeric-owner -c . | ${pack}`,
      'sh',
      from,
    ])
    const data = newDirectory('data')
    await openBases(data).add('one', piecesOf(packed.stdout, 65_536))
    expect(listing(join(data, 'bases/one'))).toBe(listing(from))
    expect(await openBases(data).list()).toEqual([{ name: 'one', sandboxes: 0 }])
  })
})

describe('a hostile tarball changes nothing outside: regression', () => {
  const refused: [string, Member[], RegExp][] = [
    [
      'a name that leads up',
      [bin, { name: '../escaped', text: 'x' }],
      /"\.\.\/escaped": it leads outside of the archive/,
    ],
    ['a name that leads up later', [bin, { name: 'bin/../../../escaped', text: 'x' }], /leads outside of the archive/],
    [
      'a file through a link',
      [bin, { name: 'out', type: '2', link: 'OUTSIDE' }, { name: 'out/escaped', text: 'x' }],
      /"out\/escaped": out is not a directory/,
    ],
    [
      'a file through a link of its parent',
      [bin, { name: 'a', type: '2', link: '..' }, { name: 'a/../escaped', text: 'x' }],
      /leads outside of the archive/,
    ],
    [
      'a directory through a link',
      [bin, { name: 'out', type: '2', link: 'OUTSIDE' }, { name: 'out/escaped/', type: '5' }],
      /out is not a directory/,
    ],
    [
      'a hard link to the outside',
      [bin, { name: 'h', type: '1', link: '../../secret' }],
      /"h": it leads outside of the archive/,
    ],
    [
      'a hard link through a link',
      [bin, { name: 'out', type: '2', link: 'OUTSIDE' }, { name: 'h', type: '1', link: 'out/secret' }],
      /out is not a directory/,
    ],
    ['a hard link to nothing', [bin, { name: 'h', type: '1', link: 'none' }], /"h": ENOENT/],
    [
      'a directory that becomes a link',
      [bin, { name: 'bin', type: '2', link: 'OUTSIDE' }],
      /an earlier member made it a directory/,
    ],
    ['a root that is a link', [{ name: '.', type: '2', link: 'OUTSIDE' }], /replaces the whole tree/],
    ['a /proc that is a link', [bin, { name: 'proc', type: '2', link: '/etc' }], /\/proc that is not a directory/],
    ['no root file system', [{ name: 'manifest.json', text: '{}' }], /no \/bin and no \/usr.*docker export/],
    ['a kind of member that is not known', [bin, { name: 's', type: 'S' }], /"s" is of a kind/],
  ]
  test.each(refused)('%s', async (_, members, reason) => {
    const data = newDirectory('data')
    const outside = newDirectory('outside')
    writeFileSync(join(outside, 'secret'), 'secret')
    writeFileSync(join(data, 'secret'), 'secret')
    const archive = tarOf(
      ...members.map(each => ({ ...each, ...(each.link && { link: each.link.replace('OUTSIDE', outside) }) })),
    )
    await expect(openBases(data).add('one', piecesOf(archive))).rejects.toThrow(reason)
    expect(readdirSync(join(data, 'bases'))).toEqual([])
    expect([readdirSync(data).sort(), readdirSync(outside)]).toEqual([['bases', 'secret'], ['secret']])
    expect([statSync(join(data, 'secret')).nlink, statSync(join(outside, 'secret')).nlink]).toEqual([1, 1])
  })

  test('absolute names stay inside, devices and FIFOs are left out, a later member replaces a link', async () => {
    const data = newDirectory('data')
    const outside = join(newDirectory('outside'), 'file')
    writeFileSync(outside, 'kept')
    const archive = tarOf(
      bin,
      { name: '/bin/absolute', text: 'in' },
      { name: 'dev/sda', type: '3' },
      { name: 'bin/fifo', type: '6' },
      { name: 'bin/link', type: '2', link: outside },
      { name: 'bin/link', text: 'replaced' },
    )
    await openBases(data).add('one', piecesOf(archive))
    const found = sh('cd "$1"; find . -mindepth 1 -printf "%p %y\\n" | sort', join(data, 'bases/one'))
    expect(found).toBe('./bin d\n./bin/absolute f\n./bin/link f\n./dev d\n')
    expect(await Bun.file(outside).text()).toBe('kept')
  })
})

const whole = Uint8Array.from(tarOf(bin, { name: 'bin/sh', text: 'x'.repeat(5000) }))
const broken: [string, Uint8Array, RegExp][] = [
  ['is cut short in a file', whole.subarray(0, 3000), /cut short/],
  ['is cut short between two', whole.subarray(0, 512), /cut short/],
  ['is empty', new Uint8Array(), /cut short/],
  ['is something else', Buffer.from('PK\x03\x04'.repeat(500)), /not a tar archive/],
  ['is a gzip that is cut short', Bun.gzipSync(whole).subarray(0, 60), /unexpected end/],
  ['is an xz that is none', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 1, 2, 3]), /./],
]
test.each(broken)('a tarball that %s leaves nothing', async (_, bytes, reason) => {
  const data = newDirectory('data')
  await expect(openBases(data).add('one', piecesOf(bytes))).rejects.toThrow(reason)
  expect(readdirSync(join(data, 'bases'))).toEqual([])
})

test.each(['', 'host', '../up', '.hidden', 'a/b', '/abs', 'x'.repeat(65)])('%p is no name of a base', async name => {
  const data = newDirectory('data')
  await expect(openBases(data).add(name, piecesOf(whole))).rejects.toThrow(/cannot be a base's name/)
  expect(readdirSync(data)).toEqual([])
})

test('a name is taken once, also by two at once; it is free again once it was removed', async () => {
  const data = newDirectory('data')
  const add = () => openBases(data).add('one', piecesOf(whole))
  const outcomes = await Promise.allSettled([add(), add()])
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  await expect(add()).rejects.toThrow(/There is a base one already/)
  await openBases(data).remove('one')
  await expect(openBases(data).remove('one')).rejects.toThrow(/There is no base one/)
  expect(readdirSync(join(data, 'bases'))).toEqual([])
  await add()
})

test('what an add that was killed has left is erased by the next one, what another one makes is not', async () => {
  const data = newDirectory('data')
  const [dead, alive] = ['.draft-4194305-x', `.draft-${process.ppid}-x`]
  for (const name of [dead, alive]) mkdirSync(join(data, 'bases', name), { recursive: true })
  await openBases(data).add('one', piecesOf(whole))
  expect(readdirSync(join(data, 'bases')).sort()).toEqual([alive, 'one'])
})

test('users of a base are counted also when the data directory is reached by a link', async () => {
  const data = newDirectory('data')
  await openBases(data).add('one', piecesOf(whole))
  const sandbox = join(data, 'sandboxes/env_1')
  mkdirSync(sandbox, { recursive: true })
  const meta = { version: 1, id: 'env_1', base: join(data, 'bases/one'), host: false, image: false, limits: {} }
  writeFileSync(join(sandbox, 'meta.json'), JSON.stringify(meta))
  const link = `${data}-link`
  symlinkSync(data, link)
  expect(await openBases(link).list()).toEqual([{ name: 'one', sandboxes: 1 }])
  await expect(openBases(link).remove('one')).rejects.toThrow('1 sandbox uses the base one: delete them first.')
  expect(existsSync(join(data, 'bases/one/bin'))).toBe(true)
})
