import { accessSync, constants, lchownSync, lstatSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { type Program, pathOf } from './start-program.ts'
import sudo from './sudo.sh' with { type: 'text' }

/** A user of the sandbox. */
export interface Person {
  name: string
  uid: number
  gid: number
  home: string
}

/** These users exist also where /etc/passwd lacks them. */
const unnamed: readonly Person[] = [
  { name: 'root', uid: 0, gid: 0, home: '/root' },
  { name: 'user', uid: 0, gid: 0, home: '/home/user' },
]

/** Finds the user of a name. `root` and `user` exist also where /etc/passwd lacks them. */
export function findPerson(name: string): Person | undefined {
  return readPeople().find(each => each.name === name) ?? unnamed.find(each => each.name === name)
}

function readPeople(): Person[] {
  let text: string
  try {
    text = readFileSync('/etc/passwd', 'utf8')
  } catch {
    return []
  }
  return text.split('\n').flatMap(line => {
    const [name, , uid, gid, , home] = line.split(':')
    if (!name || !/^\d+$/.test(uid ?? '') || !/^\d+$/.test(gid ?? '')) return []
    return [{ name, uid: Number(uid), gid: Number(gid), home: home || '/' }]
  })
}

/** The program is util-linux's. Busybox has one that knows no users. */
const SETPRIV = '/usr/bin/setpriv'

/** Where the map of ids has only one id, nobody can become another user. */
const UID_MAP = '/proc/self/uid_map'

/**
 * The words that run a program as that user. It keeps root's capabilities: no program can gain any later, so that without them
 * nothing like sudo could work. Throws an error with the code of Linux for a program that is not there.
 */
export function asUser(
  { uid, gid, home }: Person,
  argv: readonly string[],
  { env, cwd }: Pick<Program, 'env' | 'cwd'>,
): readonly string[] {
  if (uid === 0 || !isMapped(uid) || !isSetpriv()) return argv
  // Otherwise setpriv would start, and report by itself what it could not start.
  accessSync(resolve(cwd, pathOf(argv[0] ?? '', env, cwd)), constants.X_OK)
  ownHome(home, uid, gid)
  writeSudo()
  const kept = capabilities()
  const keep = kept === '' ? [] : [`--inh-caps=${kept}`, `--ambient-caps=${kept}`]
  return [SETPRIV, `--reuid=${uid}`, `--regid=${gid}`, '--init-groups', ...keep, '--', ...argv]
}

function isSetpriv(): boolean {
  try {
    return basename(realpathSync(SETPRIV)) === 'setpriv'
  } catch {
    return false
  }
}

/** Gives the user a home directory that was made for root, because git trusts no directory of another user. */
function ownHome(home: string, uid: number, gid: number): void {
  try {
    if (lstatSync(home).uid === 0 && home !== '/') lchownSync(home, uid, gid)
  } catch {
    // There is no such directory.
  }
}

const SUDO = '/usr/local/bin/sudo'

/** Is written where nothing has that name: an image's sudo cannot gain rights that no program may gain. */
function writeSudo(): void {
  try {
    writeFileSync(SUDO, sudo, { mode: 0o755, flag: 'wx' })
  } catch {
    // The file is already there.
  }
}

/** Lists in setpriv's form the capabilities that this process has, such as `+cap_0,+cap_5`. */
function capabilities(): string {
  const [, bits = '0'] = /^CapPrm:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  const [, bounds = '0'] = /^CapBnd:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  const kept = BigInt(`0x${bits}`) & BigInt(`0x${bounds}`)
  return Array.from({ length: 64 }, (_, number) => number)
    .filter(number => (kept >> BigInt(number)) & 1n)
    .map(number => `+cap_${number}`)
    .join(',')
}

function isMapped(id: number): boolean {
  try {
    const lines = readFileSync(UID_MAP, 'utf8').trim().split('\n')
    return lines.some(line => {
      const [first = 0, , count = 0] = line.trim().split(/ +/).map(Number)
      return id >= first && id < first + count
    })
  } catch {
    return false
  }
}
