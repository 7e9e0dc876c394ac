import { ptr } from 'bun:ffi'
import { type Descriptor, ownDescriptor } from '../../../src/descriptor.ts'
import { checked, LinuxError, libc } from './libc.ts'

const SYS_PIDFD_OPEN = 434
const SYS_PIDFD_GETFD = 438
const POLLIN = 1
const FIONREAD = 0x541b
const F_SETPIPE_SZ = 1031
const WIDE_PIPE_BYTES = 256 * 1024

/** Opens a process: its pid may come to mean another one, this cannot. Throws when it has ended. */
export const openProcess = (pid: number): Descriptor =>
  ownDescriptor(checked(`pidfd_open ${pid}`, libc().syscall(SYS_PIDFD_OPEN, pid, 0, 0, 0, 0)))

/**
 * Copies a descriptor of another process, closed on exec. Throws EBADF when that process has none of this number, and EPERM or
 * ENOSYS where this process may not do it. The two share its position and its flags, which the other may change at any time.
 */
export const copyDescriptor = (process: Descriptor, number: number): Descriptor =>
  ownDescriptor(checked('pidfd_getfd', libc().syscall(SYS_PIDFD_GETFD, process.number, number, 0, 0, 0)))

/** Opens a process. Undefined when it has ended. */
export function findProcess(pid: number): Descriptor | undefined {
  try {
    return openProcess(pid)
  } catch (error) {
    if (error instanceof LinuxError && error.code === 'ESRCH') return undefined
    throw error
  }
}

/** Whether a process has ended, and has let go of its memory, files and namespaces. */
export function hasEnded(process: Descriptor): boolean {
  const poll = new Int32Array([process.number, POLLIN])
  for (;;) {
    try {
      return checked('poll', libc().poll(ptr(poll), 1, 0)) > 0
    } catch (error) {
      // A signal interrupted the wait, such as those by which Bun's garbage collector stops threads.
      if (!(error instanceof LinuxError && error.code === 'EINTR')) throw error
    }
  }
}

/** How many bytes wait in a pipe; 0 when that cannot be found out. */
export function pendingBytes(descriptor: number): number {
  const count = new Int32Array(1)
  return libc().ioctl(descriptor, FIONREAD, ptr(count)) === 0 ? (count[0] ?? 0) : 0
}

/** Lets more bytes wait in a pipe, so that each side is called less often. Nothing changes when Linux does not allow it. */
export function widenPipe(descriptor: number): void {
  libc().fcntl(descriptor, F_SETPIPE_SZ, WIDE_PIPE_BYTES)
}
