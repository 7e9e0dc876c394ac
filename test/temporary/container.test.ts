import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, executable, patiently, temporaryDirectory } from '../support/server.ts'

patiently()

const USER = 54_322

/** As a container engine starts a job: mounts and processes of its own, /sys and the cgroups read-only. */
const container = `
mount --make-rprivate /
mount -t proc proc /proc
mount -o remount,ro,bind /sys
for each in /sys/fs/cgroup /sys/fs/cgroup/*; do mount -o remount,ro,bind $each; done 2>/dev/null
mount -t tmpfs tmpfs /run
exec "$@"`

const kept = ['chown', 'dac_override', 'fowner', 'fsetid', 'kill', 'setgid', 'setuid', 'setpcap', 'net_bind_service']
const alsoKept = ['net_raw', 'sys_chroot', 'mknod', 'audit_write', 'setfcap']
const rights = (...more: string[]) => {
  const set = ['-all', ...[...kept, ...alsoKept, ...more].map(name => `+${name}`)].join(',')
  return ['setpriv', `--bounding-set=${set}`, `--inh-caps=${set}`]
}
const asUser = ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups']

/** Forbids, as the default profiles do, what makes namespaces and mounts. */
const profile = `
import ctypes, os, struct, sys
LOAD, EQUAL, SET, RETURN = 0x20, 0x15, 0x45, 0x06
REFUSE, ALLOW = 0x50001, 0x7fff0000
unshare, mount, umount, pivot_root, setns, clone3, clone = 272, 165, 166, 155, 308, 435, 56
rules = [(LOAD, 0, 0, 0)]
for call in (unshare, mount, umount, pivot_root, setns, *range(428, 433), 442):
    rules += [(EQUAL, 0, 1, call), (RETURN, 0, 0, REFUSE)]
rules += [(EQUAL, 0, 1, clone3), (RETURN, 0, 0, 0x50000 | 38), (EQUAL, 0, 3, clone), (LOAD, 0, 0, 16)]
rules += [(SET, 0, 1, 0x7e020000), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
code = b''.join(struct.pack('HBBI', *rule) for rule in rules)
class Program(ctypes.Structure): _fields_ = [('length', ctypes.c_ushort), ('rules', ctypes.c_char_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(Program(len(rules), code)), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])`

let directory = ''
beforeAll(() => {
  directory = temporaryDirectory()
  writeFileSync(join(directory, 'container.sh'), container)
  writeFileSync(join(directory, 'profile.py'), profile)
  // Where others can read it, wherever the build is.
  copyFileSync(executable, join(directory, 'threadbox'))
})
afterAll(() => rmSync(directory, { recursive: true }))

/** \`threadbox exec\` in a container, and what is left of it. */
async function execIn(...within: string[]) {
  const data = join(directory, crypto.randomUUID())
  mkdirSync(data)
  chmodSync(data, 0o755)
  chownSync(data, USER, USER)
  const result = await command(['exec', '--', 'id -u; pwd'], {
    env: { THREADBOX_DATA_DIR: data },
    command: [
      ...[
        'unshare',
        '--mount',
        '--pid',
        '--ipc',
        '--fork',
        '--kill-child',
        '--',
        'bash',
        join(directory, 'container.sh'),
      ],
      ...[...within, join(directory, 'threadbox')],
    ],
  })
  return { ...result, left: readdirSync(data) }
}

const worked = { code: 0, stdout: '0\n/home/user\n', stderr: '', left: [] }

describe.if(process.getuid?.() === 0 && process.arch === 'x64')('in a container', () => {
  test('an ordinary user needs no more than namespaces', async () => {
    expect(await execIn(...rights(), ...asUser)).toEqual(worked)
  })

  test('a root that may mount needs no cgroups', async () => {
    expect(await execIn(...rights('sys_admin'))).toEqual(worked)
  })

  test('a root that may not is told what it lacks', async () => {
    const { code, stderr, left } = await execIn(...rights())
    expect([code, left]).toEqual([125, []])
    expect(stderr).toMatch(/^threadbox: FAILED +mounts: .*EPERM\n +remedy: .*--cap-add SYS_ADMIN, or .*--user 1000/)
  })

  test.each([
    ['root', rights('sys_admin')],
    ['an ordinary user', [...rights(), ...asUser]],
  ])('under the default profile %s is told which one is needed', async (_, who) => {
    const { code, stderr, left } = await execIn(...who, '/usr/bin/python3', join(directory, 'profile.py'))
    expect([code, left]).toEqual([125, []])
    expect(stderr).toMatch(
      /^threadbox: FAILED +\S.*not permitted[\s\S]*\n +remedy: .*--security-opt seccomp=unconfined/i,
    )
  })
})
