import { ptr } from 'bun:ffi'
import { chmodSync, closeSync, constants, openSync, readSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { type Descriptor, ownDescriptor } from '../../../src/descriptor.ts'
import { checked, LinuxError, libc, text } from './libc.ts'

const SYS_MOVE_MOUNT = 429
const SYS_OPEN_TREE = 428
const SYS_MOUNT_SETATTR = 442
const SYS_FSOPEN = 430
const SYS_FSCONFIG = 431
const SYS_FSMOUNT = 432
const FSOPEN_CLOEXEC = 1
const FSMOUNT_CLOEXEC = 1
const FSCONFIG_SET_FLAG = 0
const FSCONFIG_SET_STRING = 1
const FSCONFIG_CMD_CREATE = 6
const MOUNT_ATTR_NOSUID = 2
const MOUNT_ATTR_NODEV = 4
const MOUNT_ATTR_NOATIME = 16
const AT_FDCWD = -100
const AT_EMPTY_PATH = 0x1000
const OPEN_TREE_CLONE = 1
const OPEN_TREE_CLOEXEC = 0x80000
const MOVE_MOUNT_F_EMPTY_PATH = 4
const MOUNT_ATTR_RDONLY = 0x1n
const MOUNT_ATTR_IDMAP = 0x100000n
const MS_NOSUID = 2n
const MS_NOEXEC = 8n
const MNT_DETACH = 2
const UMOUNT_NOFOLLOW = 8
const AF_UNIX = 1
const SOCK_STREAM = 1
const SOCK_CLOEXEC = 0x80000
const BACKLOG = 128

const empty = text('')

const SYS_MKNODAT = process.arch === 'arm64' ? 33 : 259
const S_IFCHR = 0o020000

/** Makes a character device that everyone may read and write. */
export function makeDevice(path: string, major: number, minor: number): void {
  const target = text(path)
  const result = libc().syscall(SYS_MKNODAT, AT_FDCWD, ptr(target), S_IFCHR | 0o666, (major << 8) | minor, 0)
  checked(`mknod ${path}`, result)
  // mknod obeys the server's umask; this does not.
  chmodSync(path, 0o666)
}

/** Mounts a tmpfs that only this user and root can enter. */
export function mountTmpfs(path: string, sizeKb: number, uid: number): void {
  const [type, target, data] = [text('tmpfs'), text(path), text(`size=${sizeKb}k,mode=700,uid=${uid},gid=${uid}`)]
  const flags = MS_NOSUID | MS_NOEXEC
  checked(`mount ${path}`, libc().mount(ptr(type), ptr(target), ptr(type), flags, ptr(data)))
}

/** Takes a mount and everything below it out of the tree. False when nothing is mounted there. */
export function detachMount(path: string): boolean {
  const target = text(path)
  try {
    checked(`umount ${path}`, libc().umount2(ptr(target), MNT_DETACH | UMOUNT_NOFOLLOW))
    return true
  } catch (error) {
    if (error instanceof LinuxError && (error.code === 'EINVAL' || error.code === 'ENOENT')) return false
    throw error
  }
}

export interface CloneOptions {
  readOnly?: boolean
  /** Its id map shifts the ids of files in the clone. */
  userNamespace?: Descriptor
}

const LOG_BYTES = 4096

/**
 * Mounts the ext4 file system of a block device. The mount is not in the tree yet: it ends with its descriptor unless it is
 * attached. `/proc/self/fd/N` is a path to it.
 */
export function mountExt4(device: string, { readOnly = false }: Pick<CloneOptions, 'readOnly'> = {}): Descriptor {
  const type = text('ext4')
  const opened = checked('fsopen', libc().syscall(SYS_FSOPEN, ptr(type), FSOPEN_CLOEXEC, 0, 0, 0))
  const context = ownDescriptor(opened)
  try {
    const set = (command: number, key: Buffer | undefined, value?: Buffer) => {
      const [name, content] = [key ? ptr(key) : 0, value ? ptr(value) : 0]
      const result = libc().syscall(SYS_FSCONFIG, context.number, command, name, content, 0)
      if (result < 0) checked(`mount ${device}${readProblem(context)}`, result)
    }
    set(FSCONFIG_SET_STRING, text('source'), text(device))
    for (const option of readOnly ? ['ro'] : ['noinit_itable', 'discard']) set(FSCONFIG_SET_FLAG, text(option))
    set(FSCONFIG_CMD_CREATE, undefined)
    const attributes =
      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME | (readOnly ? Number(MOUNT_ATTR_RDONLY) : 0)
    const result = libc().syscall(SYS_FSMOUNT, context.number, FSMOUNT_CLOEXEC, attributes, 0, 0)
    return ownDescriptor(checked(`fsmount ${device}`, result))
  } finally {
    context.close()
  }
}

/** Returns what the kernel says about the last call that failed, as one line. */
function readProblem(context: Descriptor): string {
  const line = Buffer.alloc(LOG_BYTES)
  try {
    return ` (${line.toString('utf8', 0, readSync(context.number, line)).trim()})`
  } catch {
    return ''
  }
}

/** Clones the mount of a directory. The clone is not in the tree yet: it ends with its descriptor unless it is attached. */
export function cloneMount(path: string, { readOnly = false, userNamespace }: CloneOptions = {}): Descriptor {
  const source = text(path)
  const flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC
  const tree = ownDescriptor(
    checked(`open_tree ${path}`, libc().syscall(SYS_OPEN_TREE, AT_FDCWD, ptr(source), flags, 0, 0)),
  )
  return restrictMount(tree, path, { readOnly, ...(userNamespace && { userNamespace }) })
}

/** Restricts a mount that is not in the tree yet, and shifts the ids of its files. Closes it when that fails. */
export function restrictMount(
  tree: Descriptor,
  path: string,
  { readOnly = false, userNamespace }: CloneOptions,
): Descriptor {
  const set = (readOnly ? MOUNT_ATTR_RDONLY : 0n) | (userNamespace === undefined ? 0n : MOUNT_ATTR_IDMAP)
  if (set === 0n) return tree
  try {
    const attributes = new BigUint64Array([set, 0n, 0n, BigInt(userNamespace?.number ?? 0)])
    const size = attributes.byteLength
    const result = libc().syscall(SYS_MOUNT_SETATTR, tree.number, ptr(empty), AT_EMPTY_PATH, ptr(attributes), size)
    checked(`mount_setattr ${path}`, result)
    return tree
  } catch (error) {
    tree.close()
    throw error
  }
}

/** Attaches a cloned mount at `to`, whatever the directories above its source forbid. Closes the descriptor. */
export function attachMount(tree: Descriptor, to: string): void {
  const target = text(to)
  try {
    const flags = MOVE_MOUNT_F_EMPTY_PATH
    const result = libc().syscall(SYS_MOVE_MOUNT, tree.number, ptr(empty), AT_FDCWD, ptr(target), flags)
    checked(`move_mount ${to}`, result)
  } finally {
    tree.close()
  }
}

/**
 * Gives a path another name that is short enough for a socket's address (107 bytes). Close it after connecting, which looks it up.
 */
export function openShortPath(path: string): { path: string; close(): void } {
  const directory = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY)
  return { path: `/proc/self/fd/${directory}/${basename(path)}`, close: () => closeSync(directory) }
}

/** Makes a listening unix socket. Replaces a file at its path. */
export function listenUnix(socketPath: string): Descriptor {
  rmSync(socketPath, { force: true })
  const socket = ownDescriptor(checked('socket', libc().socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)))
  const short = openShortPath(socketPath)
  try {
    const address = Buffer.alloc(2 + Buffer.byteLength(short.path) + 1)
    address.writeUInt16LE(AF_UNIX, 0)
    address.write(short.path, 2)
    checked(`bind ${socketPath}`, libc().bind(socket.number, ptr(address), address.byteLength))
    checked(`listen ${socketPath}`, libc().listen(socket.number, BACKLOG))
    return socket
  } catch (error) {
    socket.close()
    throw error
  } finally {
    short.close()
  }
}
