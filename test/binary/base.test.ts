import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { debianTarball } from '../support/debian.ts'
import { mirrorFlags, mirrorRules } from '../support/registries.ts'
import { command, temporaryDirectory, useServer } from '../support/server.ts'

const server = useServer({ flags: mirrorFlags })
const scratch = temporaryDirectory()
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** `threadbox base …`, beside the running server. */
const base = (...words: string[]) => command(['base', ...words, '--data-dir', server.dataDirectory])

/** An agent whose sandboxes start from this base. */
async function agent(slug: string, base: string): Promise<void> {
  const file = join(scratch, `${slug}.json`)
  await Bun.write(file, JSON.stringify({ slug, sandbox: { base } }))
  const { code, stderr } = await command(['agents', 'apply', file, '--data-dir', server.dataDirectory])
  expect([code, stderr]).toEqual([0, ''])
}

const exec = async (id: string, command: string) =>
  (await server.ask('POST', `/v1/sandboxes/${id}/exec`, { command, timeoutMs: 200_000 })).body

/** The smallest root file system: one program by many names. */
async function busyboxTarball(): Promise<string> {
  const root = join(scratch, 'busybox')
  mkdirSync(join(root, 'bin'), { recursive: true })
  await Bun.write(join(root, 'bin/busybox'), Bun.file(Bun.which('busybox') ?? ''))
  Bun.spawnSync(['chmod', '755', join(root, 'bin/busybox')])
  for (const name of ['sh', 'cat', 'ls', 'id', 'wget', 'mkdir']) symlinkSync('busybox', join(root, 'bin', name))
  const tarball = join(scratch, 'busybox.tar.xz')
  expect(Bun.spawnSync(['tar', '-C', root, '-cJf', tarball, '.']).exitCode).toBe(0)
  return tarball
}

test('a base that was added beside the server is there for the next sandbox, and is kept while one uses it', async () => {
  await agent('small', 'busybox')
  const early = await server.ask('POST', '/v1/sandboxes', { agent: 'small' })
  expect([early.status, early.body.error]).toEqual([
    400,
    {
      code: 'invalid_request',
      message: 'The base busybox is not there: add it with threadbox base add busybox FILE.',
    },
  ])
  expect(await base('add', 'busybox', await busyboxTarball())).toMatchObject({ code: 0, stderr: '' })
  const id = await server.sandbox({ agent: 'small' })
  expect(await exec(id, 'ls /; id -u; cat /etc/hostname; echo x >/bin/new && cat /bin/new')).toMatchObject({
    stdout: 'bin\ndev\netc\nhome\nproc\nroot\ntmp\nvar\n0\nsandbox\nx\n',
    stderr: '',
  })
  expect(await base('list')).toMatchObject({ stdout: 'busybox\tused by 1\n' })
  expect(await base('remove', 'busybox')).toMatchObject({
    code: 1,
    stderr: 'threadbox: 1 sandbox uses the base busybox: delete them first.\n',
  })
  expect((await server.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
  expect(await base('remove', 'busybox')).toMatchObject({ code: 0, stdout: 'busybox is removed.\n' })
  expect((await server.ask('POST', '/v1/sandboxes', { agent: 'small' })).status).toBe(400)
})

test.each([
  ['/nowhere', 'is not a directory'],
  ['/etc/passwd', 'is not a directory'],
  ['/boot', 'has no /bin and no /usr'],
  ['/', "holds the server's own data"],
  ['../etc', 'is neither an absolute path nor the name of a base'],
])('a sandbox on %s is refused with what is wrong', async (path, reason) => {
  await agent('wrong', path)
  const { status, body } = await server.ask('POST', '/v1/sandboxes', { agent: 'wrong' })
  expect([status, body.error?.code]).toEqual([400, 'invalid_request'])
  expect(body.message).toStartWith(`The base ${path} ${reason}`)
})

test('host is the base of those that name none', async () => {
  await agent('plain', 'host')
  const id = await server.sandbox({ agent: 'plain' })
  expect((await exec(id, 'test -d /usr/local/bin && cat /etc/hostname')).stdout).toBe('sandbox\n')
})

test.each([
  [['add', 'one'], 2, /^threadbox: FILE is missing. usage: threadbox base add \[FLAGS\] NAME FILE/],
  [['add', 'one', '/nowhere.tar'], 2, /There is no file \/nowhere\.tar/],
  [['add', 'one', '/etc/passwd'], 1, /^threadbox: \/etc\/passwd: it is not a tar archive/],
  [['remove', 'one'], 1, /There is no base one/],
  [[], 2, /usage/],
])('base %p says what is wrong', async (words, code, reason) => {
  const result = await base(...words)
  expect([result.code, result.stdout]).toEqual([code, ''])
  expect(result.stderr).toMatch(reason)
})

/** debootstrap wants root; what an ordinary user's sandbox installs may belong to no other id than root's. */
test.if(process.getuid?.() === 0)(
  'a Debian of its own installs packages as root inside, through the proxy',
  async () => {
    // Where it takes long, stderr has a line now and then.
    const added = await base('add', 'debian', await debianTarball())
    expect([added.code, added.stderr.replaceAll(/^threadbox: adding debian, .*\n/gm, '')]).toEqual([0, ''])
    await agent('debian', 'debian')
    const id = await server.sandbox({ agent: 'debian', ...mirrorRules })
    const result = await exec(
      id,
      'apt-get -qq update && apt-get -qq install -y --no-install-recommends jq >/dev/null && echo \'{"a":7}\' | jq .a && which jq',
    )
    expect(result).toMatchObject({ stdout: '7\n/usr/bin/jq\n', exitCode: 0 })
    // A user of the system that owns files, and a file that belongs to a group: what more ids than one are for.
    const owners = 'useradd -m worker && install -o worker -g shadow /dev/null /srv/own && stat -c "%U %G" /srv/own'
    expect((await exec(id, owners)).stdout).toBe('worker shadow\n')
  },
  400_000,
)
