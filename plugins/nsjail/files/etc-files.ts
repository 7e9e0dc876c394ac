import { readFile } from 'node:fs/promises'
import { HOSTNAME } from '../jail/config.ts'

/** The one user of a sandbox beside the system's. */
const USER = { name: 'user', id: 1000, home: '/home/user', shell: '/bin/bash' }
const FIRST_HUMAN_ID = 1000

interface GeneratedFile {
  path: string
  content: string
  mode: number
}

/** Files that describe the sandbox instead of its host. */
export const plainFiles: Readonly<Record<string, string>> = {
  'etc/hostname': `${HOSTNAME}\n`,
  'etc/hosts': `127.0.0.1 localhost ${HOSTNAME}\n::1 localhost\n`,
  // The guest listens at this address. Names are complete, so no search domain is needed.
  'etc/resolv.conf': 'nameserver 127.0.0.1\noptions edns0\n',
  'etc/nsswitch.conf':
    'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n',
  'etc/fstab': '',
  'etc/machine-id': '',
  'etc/environment': '',
  // apt needs one. It is empty: programs of the host are in the read-only /usr.
  'var/lib/dpkg/status': '',
  // A node in /usr would install there, which is read-only.
  'home/user/.npmrc': 'prefix=/usr/local\n',
}

/** Generates files with the host's system users, without passwords, and `user`. */
export async function userFiles(): Promise<GeneratedFile[]> {
  const lines = (await systemLines('/etc/passwd', 7)).map(([name, , uid, gid, , home, shell]) =>
    [name, 'x', uid, gid, '', home, shell].join(':'),
  )
  const own = [USER.name, 'x', USER.id, USER.id, '', USER.home, USER.shell].join(':')
  const users = [...lines, own]
  const locked = users.map(line => `${line.split(':')[0] ?? ''}:*:19000:0:99999:7:::`)
  return [
    { path: 'etc/passwd', content: toText(users), mode: 0o644 },
    { path: 'etc/shadow', content: toText(locked), mode: 0o640 },
  ]
}

/** Generates files with the host's system groups, without members. */
export async function groupFiles(): Promise<GeneratedFile[]> {
  const groups = (await systemLines('/etc/group', 4)).map(([name, , gid]) => `${name ?? ''}:x:${gid ?? ''}:`)
  groups.push(`${USER.name}:x:${USER.id}:`)
  const locked = groups.map(line => `${line.split(':')[0] ?? ''}:*::`)
  return [
    { path: 'etc/group', content: toText(groups), mode: 0o644 },
    { path: 'etc/gshadow', content: toText(locked), mode: 0o640 },
  ]
}

/** Reads the lines whose third field, the id, is one of the system's. */
async function systemLines(path: string, fields: number): Promise<string[][]> {
  const content = await readFile(path, 'utf8')
  return content
    .split('\n')
    .map(line => line.split(':'))
    .filter(parts => parts.length === fields && parts[2] !== '' && Number(parts[2]) < FIRST_HUMAN_ID)
}

const toText = (lines: string[]) => `${lines.join('\n')}\n`
