import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeDebianPackage } from '../../scripts/packages/debian.ts'
import { readDocuments } from '../../scripts/packages/documents.ts'
import { readRelease } from '../../scripts/packages/release.ts'
import { run } from '../../scripts/packages/run.ts'
import { debianTarball } from '../support/debian.ts'
import { executable, patiently, temporaryDirectory } from '../support/server.ts'

patiently()

let directory = ''
const at = (path: string) => join(directory, path)
/** A Debian without systemd running, as an image that is being made. */
const inRoot = (path: string) => at(`root/${path}`)
const isThere = (...paths: string[]) => paths.map(path => existsSync(inRoot(path)))
const architecture = { name: 'x64', debian: 'amd64', executable } as const

async function pack(version?: string): Promise<string> {
  const release = await readRelease()
  const documents = await readDocuments(executable, release)
  const output = at(version ?? 'first')
  mkdirSync(output)
  const named = { ...release, ...(version !== undefined && { version }) }
  return await makeDebianPackage({ release: named, architecture, documents, output, compression: ['-Znone'] })
}

/** With the mounts of a machine, which end with the command. */
const mounts = 'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
const inside = (...command: string[]) =>
  run(['unshare', '--mount', 'sh', '-c', mounts, at('root'), ...command], { env: { HOME: '/root' } })
const dpkg = (...words: string[]) => inside('dpkg', ...words)
const settings = 'etc/threadbox/environment'

let file = ''
beforeAll(async () => {
  directory = temporaryDirectory()
  file = await pack()
}, 120_000)
afterAll(() => rmSync(directory, { recursive: true }))

test('the Debian package has the executable, the unit, the manual page and completions, all of root', async () => {
  const lines = (await run(['dpkg-deb', '--contents', file])).trim().split('\n')
  const files = lines.filter(line => line.startsWith('-')).map(line => line.split(/\s+/))
  expect(files.map(([mode, owner, , , , path]) => [mode, owner, path])).toEqual([
    ['-rwxr-xr-x', 'root/root', './usr/bin/threadbox'],
    ...[
      './usr/lib/systemd/system/threadbox.service',
      './usr/share/bash-completion/completions/threadbox',
      './usr/share/doc/threadbox/CHANGELOG.md.gz',
      './usr/share/doc/threadbox/changelog.gz',
      './usr/share/doc/threadbox/copyright',
      './usr/share/fish/vendor_completions.d/threadbox.fish',
      './usr/share/man/man1/threadbox.1.gz',
      './usr/share/zsh/vendor-completions/_threadbox',
    ].map(path => ['-rw-r--r--', 'root/root', path]),
  ])
  const { version } = await readRelease()
  expect(await run(['dpkg-deb', '--field', file, 'Package', 'Version', 'Architecture'])).toBe(
    `Package: threadbox\nVersion: ${version}\nArchitecture: amd64\n`,
  )
})

test('made again of the same commit, it is the same', async () => {
  const again = await pack((await readRelease()).version)
  expect(readFileSync(again).equals(readFileSync(file))).toBe(true)
  rmSync(again)
})

test.if(process.getuid?.() === 0)(
  'it is installed, upgraded, removed and purged, and keeps settings and data until then',
  async () => {
    mkdirSync(at('root'))
    await run(['tar', '-xzf', await debianTarball(), '-C', at('root')])
    // As apt would bring it beforehand.
    writeFileSync(inRoot('usr/sbin/policy-rc.d'), '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    await run(['cp', file, inRoot('first.deb')])
    expect(await dpkg('--install', '/first.deb')).toContain('threadbox: the API key is in /etc/threadbox/environment\n')
    expect(statSync(inRoot(settings)).mode & 0o777).toBe(0o600)
    const made = readFileSync(inRoot(settings), 'utf8')
    expect(made).toMatch(/^THREADBOX_API_KEY="tbx_[\w-]{40}"$/m)
    expect(await inside('getent', 'passwd', 'threadbox')).toMatch(
      /^threadbox:x:\d+:\d+::\/var\/lib\/threadbox:\/usr\/sbin\/nologin\n$/,
    )
    const wanted = 'etc/systemd/system/multi-user.target.wants/threadbox.service'
    expect(await inside('readlink', `/${wanted}`)).toEndWith('/lib/systemd/system/threadbox.service\n')
    expect(await inside('threadbox', 'version')).toBe(`${(await readRelease()).version}\n`)

    // The unit is what the executable itself would write, and it writes none for another executable.
    const unit = readFileSync(inRoot('usr/lib/systemd/system/threadbox.service'), 'utf8').split('\n').slice(1)
    expect((await inside('threadbox', 'service', 'install', '--print')).trimEnd().split('\n').slice(1)).toEqual(
      unit.slice(0, -1),
    )

    await run(['cp', await pack('99.0.0'), inRoot('second.deb')])
    await inside('mkdir', '-p', '/var/lib/threadbox')
    writeFileSync(inRoot('var/lib/threadbox/threadbox.db'), 'rows')
    writeFileSync(inRoot(settings), `${made}OPENAI_API_KEY=own\n`)
    expect(await dpkg('--install', '/second.deb')).not.toContain('API key')
    expect(readFileSync(inRoot(settings), 'utf8')).toBe(`${made}OPENAI_API_KEY=own\n`)
    const status = await dpkg('--status', 'threadbox')
    expect(status).toContain('\nVersion: 99.0.0\n')
    expect(status).toContain('\nStatus: install ok installed\n')

    await dpkg('--remove', 'threadbox')
    expect(isThere('usr/bin/threadbox', settings, 'var/lib/threadbox/threadbox.db')).toEqual([false, true, true])

    await dpkg('--purge', 'threadbox')
    expect(isThere('etc/threadbox', 'var/lib/threadbox', wanted)).toEqual([false, false, false])
    expect(readFileSync(inRoot('etc/passwd'), 'utf8')).not.toContain('threadbox')
    expect(await inside('sh', '-c', 'find / -xdev -name "*threadbox*" -not -path "/proc/*"')).toBe('')
  },
  400_000,
)
