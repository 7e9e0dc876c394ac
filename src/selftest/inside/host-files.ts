import { linkSync, mkdirSync, readdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import type { Programs } from './program.ts'
import { CallError, syscall } from './syscall.ts'

const UP = '../'.repeat(40)
const AF_UNIX = 1
const SOCK_STREAM = 1
const O_PATH = 0x20_0000
const CURRENT_DIRECTORY = -100
const FOLLOW = 0x400
/** These root directories lead outside where a sandbox is not closed. */
const roots = ['/proc/1/root', '/proc/self/root', '/proc/thread-self/root', '/proc/1/cwd', '/proc/self/cwd/../..']

/** Engines and other servers of a machine listen here. */
const sockets = [
  ...['/var/run/docker.sock', '/run/docker.sock', '/run/containerd/containerd.sock', '/run/podman/podman.sock'],
  ...['/run/crio/crio.sock', '/run/dbus/system_bus_socket', '/run/systemd/private', '/run/systemd/journal/socket'],
  ...['/run/udev/control', '/run/snapd.socket', '/run/rpcbind.sock', '/run/libvirt/libvirt-sock'],
]

/** The programs try paths to the host's files. The probe compares these files afterwards. */
export const hostFiles: Programs = {
  paths({ hostDirectory, seesNone }) {
    for (const start of ['', '/', UP, '//']) seesNone(`${start}${hostDirectory}/secret`)
  },
  links({ hostDirectory, seesNone }) {
    symlinkSync(`${hostDirectory}/secret`, 'file')
    symlinkSync(hostDirectory, 'directory')
    symlinkSync(`${UP}${hostDirectory}`, 'up')
    for (const path of ['file', 'directory/secret', 'up/secret']) seesNone(path)
  },
  'process-roots'({ hostDirectory, seesNone }) {
    for (const root of roots) seesNone(`${root}${hostDirectory}/secret`)
  },
  descriptors({ hostDirectory, seesNone }) {
    for (const pid of ['self', '1']) {
      for (const name of namesIn(`/proc/${pid}/fd`)) {
        seesNone(`/proc/${pid}/fd/${name}/${UP}${hostDirectory}/secret`)
        seesNone(`/proc/${pid}/fd/${name}/../..${hostDirectory}/secret`)
      }
    }
  },
  'hard-links'({ hostDirectory, refused }) {
    for (const root of ['', ...roots]) {
      refused(`a hard link by ${root}/`, () => linkSync(`${root}${hostDirectory}/secret`, 'hard'))
    }
    refused("a hard link to the guest's executable", () =>
      syscall('linkat', CURRENT_DIRECTORY, '/proc/1/exe', CURRENT_DIRECTORY, 'executable', FOLLOW),
    )
  },
  renames({ hostDirectory, refused }) {
    writeFileSync('mine', 'overwritten')
    symlinkSync(hostDirectory, 'into')
    for (const root of ['', ...roots, 'into']) {
      refused(`a rename by ${root}/`, () =>
        renameSync('mine', root === 'into' ? 'into/target' : `${root}${hostDirectory}/target`),
      )
    }
  },
  writes({ hostDirectory }) {
    // Where the path leads inside the sandbox, this makes a file there. The probe compares the host's files.
    symlinkSync(`${hostDirectory}/target`, 'to')
    for (const path of ['to', ...roots.map(root => `${root}${hostDirectory}/target`)]) {
      quietly(() => writeFileSync(path, 'overwritten'))
    }
    for (const path of ['to', ...roots.map(root => `${root}${hostDirectory}/secret`)]) quietly(() => unlinkSync(path))
  },
  chroot({ hostDirectory, seesNone }) {
    mkdirSync('cage')
    const root = syscall('openat', CURRENT_DIRECTORY, '/', O_PATH, 0)
    quietly(() => syscall('chroot', 'cage'))
    quietly(() => syscall('fchdir', root))
    for (let level = 0; level < 40; level++) quietly(() => syscall('chdir', '..'))
    quietly(() => syscall('chroot', '.'))
    seesNone(`${hostDirectory.slice(1)}/secret`)
    seesNone(`${hostDirectory}/secret`)
  },
  'engine-sockets'({ found }) {
    for (const path of sockets) {
      const address = Buffer.alloc(3 + Buffer.byteLength(path))
      address.writeUInt16LE(AF_UNIX)
      address.write(path, 2)
      const socket = syscall('socket', AF_UNIX, SOCK_STREAM, 0)
      quietly(() => {
        syscall('connect', socket, address, address.byteLength)
        found(`${path} answers`)
      })
      syscall('close', socket)
    }
  },
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

/** Ignores that the work is refused. */
function quietly(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    if (!(error instanceof CallError) && !(error instanceof Error && 'code' in error)) throw error
  }
}
