import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Encrypter, generateIdentity, identityToRecipient } from 'age-encryption'
import { writeTar } from '../../src/backup/write-tar.ts'
import { codeOf } from '../../src/read/error-code.ts'
import {
  command,
  executable,
  plainEnvironment,
  type Server,
  startServer,
  temporaryDirectory,
  useServer,
} from '../support/server.ts'
import { type Member, tarOf } from '../support/tar.ts'
import { until } from '../support/until.ts'

const server = useServer()
const scratch = temporaryDirectory()
afterAll(() => rmSync(scratch, { recursive: true, force: true }))
const at = (name: string) => join(scratch, name)

const create = (to: string, ...flags: string[]) =>
  command(['backup', 'create', to, '--data-dir', server.dataDirectory, ...flags])
const restore = (file: string, to: string, ...flags: string[]) =>
  command(['backup', 'restore', file, '--data-dir', to, ...flags])
const verify = (file: string, ...flags: string[]) =>
  command(['backup', 'verify', file, '--temporary', scratch, ...flags])

/** Of every file below a directory, and what /etc has: names, owners, modes, content. */
const fingerprint =
  'cd /home/user && find . /etc/own -not -name log -printf "%p %y %m %u %g %l\\n" | sort | sha256sum; sha256sum data deep/*'

const filled =
  'head -c 3000000 /dev/urandom >data; mkdir deep; echo a >deep/a; ln -s ../data deep/link; chmod 4750 deep/a; ' +
  'rm -rf /var/mail; truncate -s 20M holes; echo end >>holes; touch /etc/own; useradd -u 1234 other 2>/dev/null; chown 1234:99 deep/a'

let sandbox = ''
let threadId = ''
let before = ''
let file = ''

beforeAll(async () => {
  sandbox = await server.sandbox({ envs: { SECRET: 'seen' } })
  await server.ask('PUT', '/v1/secrets/GITHUB', { value: `ghp_${'a'.repeat(36)}` })
  await server.exec(sandbox, filled)
  before = (await server.exec(sandbox, fingerprint)).stdout
  const reply = await server.chat('remember me', { sandboxId: sandbox })
  await reply.text()
  const { body } = await server.ask('GET', `/v1/sandboxes/${sandbox}/threads`)
  threadId = body[0].id
})

/** The program that copies a disk for another one. */
const copyOf = (pid: number): number | undefined =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter(Boolean)
    .map(Number)
    .find(child => readFileSync(`/proc/${child}/comm`, 'utf8') === 'cp\n')

const messagesOf = async (from: Server) =>
  (await from.ask('GET', `/v1/sandboxes/${sandbox}/threads/${threadId}`)).body.messages

test('a backup beside a running server restores sandboxes and threads as they were, and chats go on', async () => {
  const made = await create(at('backups'), '--json')
  expect([made.code, made.stderr]).toEqual([0, ''])
  const { backup, sandboxes } = JSON.parse(made.stdout)
  file = backup
  expect(sandboxes).toEqual([
    expect.objectContaining({ id: sandbox, backend: 'nsjail', at: expect.any(String), frozenMs: expect.any(Number) }),
  ])
  expect(readdirSync(server.dataDirectory).filter(name => name.startsWith('.'))).toEqual([])
  const messages = await messagesOf(server)
  expect(messages).toHaveLength(2)
  // What the other server leaves of the same sandbox is looked for.
  await server.ask('POST', `/v1/sandboxes/${sandbox}/stop`)

  const restored = await restore(file, at('new'))
  expect([restored.code, restored.stderr]).toEqual([0, ''])
  await using other = await startServer({ dataDirectory: at('new') })
  expect(await other.exec(sandbox, fingerprint)).toMatchObject({ stdout: before, exitCode: 0 })
  expect(await other.exec(sandbox, 'ls /var/mail; echo $SECRET; tail -c 4 holes; stat -c "%b %s" holes')).toMatchObject(
    {
      stdout: expect.stringMatching(/^seen\nend\n8 20971524\n$/),
    },
  )
  expect(await messagesOf(other)).toEqual(messages)
  await (await other.chat('and now', { sandboxId: sandbox, threadId })).text()
  expect(await messagesOf(other)).toHaveLength(4)
  expect(await messagesOf(server)).toHaveLength(2)
  // The shape of a placeholder is that of a value that can be decrypted.
  const secrets = [{ secret: 'GITHUB', hosts: ['github.com'], as: { env: 'GITHUB_TOKEN' } }]
  const binding = await other.sandbox({ secrets })
  expect((await other.exec(binding, 'echo $GITHUB_TOKEN')).stdout).toMatch(/^ghp_[a-z0-9]{36}\n$/)
})

test('a backup is listed, verified, and open to other programs', async () => {
  const [name = ''] = readdirSync(at('backups'))
  expect((await command(['backup', 'list', at('backups'), '--quiet'])).stdout).toBe(`${name}\n`)
  expect(await verify(file)).toMatchObject({ code: 0, stdout: expect.stringMatching(/ is whole: 1 sandbox,/) })
  expect(readdirSync(scratch).filter(each => each.startsWith('threadbox-verify'))).toEqual([])
  mkdirSync(at('plain'))
  expect(Bun.spawnSync(['tar', '--zstd', '-C', at('plain'), '-xf', file]).exitCode).toBe(0)
  const { members } = JSON.parse(readFileSync(at('plain/checksums.json'), 'utf8'))
  const image = Object.keys(members).find(each => each.endsWith('disk.img')) ?? ''
  expect(Bun.spawnSync(['e2fsck', '-fn', join(at('plain'), image)]).exitCode).toBe(0)
  expect(Bun.spawnSync(['sha256sum', at('plain/threadbox.db')]).stdout.toString()).toStartWith(
    members['threadbox.db'].sha256,
  )
})

test('a restore refuses a directory that is not empty, and changes nothing there', async () => {
  mkdirSync(at('full'))
  writeFileSync(at('full/note'), 'mine')
  const refused = await restore(file, at('full'))
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('is not empty') })
  expect(readdirSync(at('full'))).toEqual(['note'])
})

test('a restore goes on where one was killed', async () => {
  mkdirSync(at('cut/.restore/sandboxes'), { recursive: true })
  expect((await restore(file, at('cut'))).code).toBe(0)
  expect(readdirSync(at('cut')).sort()).toEqual(['base', 'sandboxes', 'threadbox.db', 'threadbox.key'])
})

test('a restore goes on where one was killed while it put its files in their places, regression', async () => {
  mkdirSync(at('half/.restore/sandboxes'), { recursive: true })
  mkdirSync(at('half/base/host'), { recursive: true })
  writeFileSync(at('half/threadbox.key'), 'key')
  const { code, stderr } = await restore(file, at('half'))
  expect([code, stderr]).toEqual([0, ''])
  expect(readdirSync(at('half')).sort()).toEqual(['base', 'sandboxes', 'threadbox.db', 'threadbox.key'])
  // What no restore makes is somebody's, also beside a draft.
  mkdirSync(at('theirs/.restore'), { recursive: true })
  writeFileSync(at('theirs/note'), 'mine')
  expect((await restore(file, at('theirs'))).code).toBe(1)
  expect(readdirSync(at('theirs')).sort()).toEqual(['.restore', 'note'])
})

test('a backup that was altered or cut is refused, wherever that is, regression', async () => {
  const bytes = readFileSync(file)
  const places = [0.001, 0.1, 0.5, 0.9, 0.9999].map(part => Math.floor(bytes.byteLength * part))
  for (const place of places) {
    const altered = Buffer.from(bytes)
    altered[place] = (altered[place] ?? 0) ^ 0x10
    writeFileSync(at('altered.tar.zst'), altered)
    expect((await restore(at('altered.tar.zst'), at('none'))).code).toBe(1)
    writeFileSync(at('short.tar.zst'), bytes.subarray(0, place))
    expect((await verify(at('short.tar.zst'))).code).toBe(1)
  }
  writeFileSync(at('text.tar.zst'), 'nothing of a backup')
  expect((await restore(at('text.tar.zst'), at('none'))).stderr).toEndWith(
    'text.tar.zst: it is no backup of threadbox\n',
  )
  expect(existsSync(at('none'))).toBe(false)
})

describe('an encrypted backup', () => {
  const wrong = 'correct horse battery stable'
  const keep = (name: string, text: string) => {
    writeFileSync(at(name), text)
    return at(name)
  }

  test('opens with its passphrase alone, from a file or the variable', async () => {
    const passphrase = keep('passphrase', 'correct horse battery staple\n')
    const made = await create(at('sealed/one.age'), '--sandboxes', 'none', '--passphrase-file', passphrase)
    expect([made.code, made.stderr]).toEqual([0, ''])
    const bytes = readFileSync(at('sealed/one.age'))
    expect(bytes.subarray(0, 21).toString()).toBe('age-encryption.org/v1')
    expect(await verify(at('sealed/one.age'))).toMatchObject({ code: 1, stderr: expect.stringContaining('--identity') })
    // As the program age seals it, in less time: a passphrase takes a second of work each time.
    const light = new Encrypter()
    light.setScryptWorkFactor(10)
    light.setPassphrase('correct horse battery staple')
    const plain = readFileSync(file)
    writeFileSync(at('sealed/light.age'), await light.encrypt(plain))
    expect(await verify(at('sealed/light.age'), '--passphrase-file', passphrase)).toMatchObject({ code: 0, stderr: '' })
    const refused = await verify(at('sealed/light.age'), '--passphrase-file', keep('wrong', wrong))
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('light.age: no passphrase or key that was given opens it'),
    })
    const env = { THREADBOX_BACKUP_PASSPHRASE: 'correct horse battery staple' }
    const opened = await command(['backup', 'verify', at('sealed/one.age'), '--temporary', scratch], { env })
    expect([opened.code, opened.stderr]).toEqual([0, ''])
  })

  test('opens with the private key of one of its recipients', async () => {
    const [own, other] = await Promise.all([generateIdentity(), generateIdentity()])
    const recipients = await Promise.all([own, await generateIdentity()].map(identityToRecipient))
    const flags = recipients.flatMap(recipient => ['--recipient', recipient])
    expect((await create(at('sealed/two.age'), '--sandboxes', 'none', ...flags)).code).toBe(0)
    const key = keep('key.txt', `# made for a test\n${own}\n`)
    expect((await verify(at('sealed/two.age'), '--identity', key)).code).toBe(0)
    expect((await verify(at('sealed/two.age'), '--identity', keep('other.txt', other))).code).toBe(1)
  })
})

test('a backup that is killed leaves no half file and nothing frozen, regression', async () => {
  await server.exec(
    sandbox,
    'head -c 250000000 /dev/zero | tr "\\0" x >big; (while sleep 0.01; do date +%s%N >>log; done) >/dev/null 2>&1 &',
  )
  const { sandboxId } = (await server.ask('GET', `/v1/sandboxes/${sandbox}`)).body
  const mark = join(server.dataDirectory, 'sandboxes', sandboxId, 'frozen')
  for (const kills of ['the command', 'the command and what it has started']) {
    const child = Bun.spawn([executable, 'backup', 'create', at('killed'), '--data-dir', server.dataDirectory], {
      env: plainEnvironment,
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    await until(() => existsSync(mark) && readFileSync(mark, 'utf8') !== '')
    const helper = Number(readFileSync(mark, 'utf8'))
    child.kill('SIGKILL')
    await child.exited
    expect({ kills, files: readdirSync(at('killed')).filter(name => !/\.part-/.test(name)) }).toEqual({
      kills,
      files: [],
    })
    let copying: number | undefined
    if (kills !== 'the command') {
      await until(() => {
        copying = copyOf(helper)
        return copying !== undefined
      })
      // As on a slow disk.
      if (copying !== undefined) process.kill(copying, 'SIGSTOP')
      process.kill(helper, 'SIGKILL')
      // A stop waits for a backup, and ends what one has left.
      expect((await server.ask('POST', `/v1/sandboxes/${sandbox}/stop`)).status).toBe(200)
    }
    expect(await server.exec(sandbox, 'echo again >again; sync; cat again')).toMatchObject({ stdout: 'again\n' })
    if (copying !== undefined) endIfThere(copying)
    await until(() => !existsSync(mark))
  }
  await server.exec(sandbox, 'rm big')
  expect((await create(at('killed'))).code).toBe(0)
  expect(readdirSync(at('killed'))).toHaveLength(1)
  expect(readdirSync(server.dataDirectory).filter(name => name.startsWith('.'))).toEqual([])
})

/** The server may have ended it already, when it stopped the sandbox. */
function endIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}

test('backups are kept by count and age, and no other file is removed', async () => {
  const names = ['2024-01-01T00-00-00-000Z', '2024-01-02T00-00-00-000Z', '2024-01-03T00-00-00-000Z'].map(
    time => `threadbox-backup-${time}.tar.zst`,
  )
  mkdirSync(at('kept'))
  for (const name of [...names, 'threadbox-backup-of-mine.tar.zst', 'notes']) writeFileSync(at(`kept/${name}`), '')
  expect((await create(at('kept'), '--sandboxes', 'none', '--keep', '3')).code).toBe(0)
  const kept = () => readdirSync(at('kept')).sort()
  expect(kept().filter(name => name.startsWith('threadbox-backup-2024'))).toEqual(names.slice(1))
  expect((await create(at('kept'), '--sandboxes', 'none', '--keep', '1', '--keep-days', '2')).code).toBe(0)
  expect(kept().filter(name => name.startsWith('threadbox-backup-2'))).toHaveLength(2)
  expect(kept()).toContain('threadbox-backup-of-mine.tar.zst')
  expect((await create(at('kept/one.tar.zst'), '--keep', '1')).code).toBe(2)
})

test('a backup is made, and said so, also when an old one cannot be removed, regression', async () => {
  const old = 'threadbox-backup-2024-01-01T00-00-00-000Z.tar.zst'
  mkdirSync(at(`stuck/${old}`), { recursive: true })
  const { code, stdout, stderr } = await create(at('stuck'), '--sandboxes', 'none', '--keep', '1', '--quiet')
  expect(stdout).toMatch(/^\S+threadbox-backup-\S+\.tar\.zst\n$/)
  expect([code, existsSync(stdout.trim()), stderr]).toEqual([1, true, expect.stringContaining(`${old} is not removed`)])
})

test.each([
  ['disk', /the disk of .* is damaged/],
  ['key', /encrypted with another/],
])('verify notices a damaged %s under right checksums, regression', async (damage, says) => {
  const bad = at(`bad-${damage}`)
  mkdirSync(bad)
  expect(Bun.spawnSync(['tar', '--zstd', '-C', bad, '-xf', file]).exitCode).toBe(0)
  const { members } = JSON.parse(readFileSync(join(bad, 'checksums.json'), 'utf8'))
  const names = Object.keys(members)
  const image = join(bad, names.find(name => name.endsWith('disk.img')) ?? '')
  if (damage === 'key') writeFileSync(join(bad, 'threadbox.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`)
  // Bitmaps and inodes, behind the superblock and the descriptors of groups.
  else
    expect(
      Bun.spawnSync(['dd', 'if=/dev/urandom', `of=${image}`, ...'bs=4096 seek=2 count=4000 conv=notrunc'.split(' ')])
        .exitCode,
    ).toBe(0)
  const written: Record<string, object> = {}
  const all = async function* () {
    for (const name of names) yield { name, from: join(bad, name) }
    yield { name: 'checksums.json', from: Buffer.from(JSON.stringify({ members: written, sandboxes: [] })) }
  }
  const pieces: Uint8Array[] = []
  const keep = ({ name, ...each }: { name: string }) => {
    written[name] = each
  }
  for await (const piece of writeTar(all(), keep)) pieces.push(piece)
  writeFileSync(at('bad.tar.zst'), Bun.zstdCompressSync(Buffer.concat(pieces)))
  expect(await verify(at('bad.tar.zst'))).toMatchObject({ code: 1, stderr: expect.stringMatching(says) })
})

describe('a hand-made backup', () => {
  const sha = (text: string | Buffer) => new Bun.CryptoHasher('sha256').update(text).digest('hex')

  /** Its checksums are right, unless they are given. */
  const make = (members: Member[], manifest: object = {}) => {
    const first = {
      name: 'manifest.json',
      text: JSON.stringify({
        ...{ format: 1, threadbox: '0.1.0', createdAt: '2026-01-01T00:00:00.000Z' },
        ...{ schemaVersion: 1, databaseAt: '2026-01-01T00:00:00.000Z' },
        ...manifest,
      }),
    }
    const listed = [first, ...members].map(({ name, text = '' }) => [
      name,
      { bytes: Buffer.byteLength(text), sha256: sha(text) },
    ])
    const last = {
      name: 'checksums.json',
      text: JSON.stringify({ members: Object.fromEntries(listed), sandboxes: [] }),
    }
    writeFileSync(at('made.tar.zst'), Bun.zstdCompressSync(tarOf(first, ...members, last)))
    return restore(at('made.tar.zst'), at('made'))
  }

  test.each<[string, Member]>([
    ['a name that leads out', { name: '../escaped', text: 'x' }],
    ['a name from the root', { name: `${scratch}/escaped`, text: 'x' }],
    ['a name that leads out of a sandbox', { name: 'sandboxes/../../escaped', text: 'x' }],
    ['a link', { name: 'bundles', type: '2', link: scratch }],
    ['a link in the place of a file', { name: 'threadbox.key', type: '2', link: '/etc/shadow' }],
    ['a hard link', { name: 'threadbox.key', type: '1', link: '/etc/shadow' }],
    ['a device', { name: 'threadbox.key', type: '3' }],
    ['another file', { name: 'plugin.ts', text: 'x' }],
  ])('with %s is refused, regression', async (_, member) => {
    expect(await make([member])).toMatchObject({ code: 1, stderr: expect.stringContaining('which is no file') })
    expect([existsSync(at('made')), existsSync(at('escaped'))]).toEqual([false, false])
  })

  test('whose base leads out of its directory is refused, regression', async () => {
    const db = new Database(at('empty.db'))
    db.run('pragma user_version = 1')
    db.run('create table sandboxes (id, environment_id, backend)')
    db.close()
    const database = { name: 'threadbox.db', text: readFileSync(at('empty.db')) }
    const base = (...members: Member[]) => ({ name: 'bases/evil.tar', text: tarOf(...members) })
    const link = { name: 'out', type: '2', link: scratch }
    for (const members of [[link, { name: 'out/escaped', text: 'x' }], [{ name: '../../../escaped', text: 'x' }]]) {
      expect(await make([database, base(...members)])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/escaped/),
      })
      expect([existsSync(at('made')), existsSync(at('escaped'))]).toEqual([false, false])
    }
  })

  test('of a newer schema or format is refused, with the version that can restore it', async () => {
    expect(await make([], { schemaVersion: 9999, threadbox: '9.1.0' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('newer threadbox (9.1.0, schema 9999'),
    })
    expect(await make([], { format: 2 })).toMatchObject({ code: 1, stderr: expect.stringContaining('newer threadbox') })
  })

  test('with the same file twice, or one that is not in its list, is refused, regression', async () => {
    const key = { name: 'threadbox.key', text: 'x' }
    expect((await make([key, key])).stderr).toContain('twice')
    writeFileSync(at('odd.tar.zst'), Bun.zstdCompressSync(tarOf(key)))
    expect((await restore(at('odd.tar.zst'), at('made'))).stderr).toContain('no backup of threadbox')
  })
})
