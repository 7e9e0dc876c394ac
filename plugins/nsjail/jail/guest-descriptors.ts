import { readFileSync } from 'node:fs'
import type { Descriptor } from '../../../src/descriptor.ts'
import type { GuestDescriptors } from '../../../src/guest/host/guest-descriptors.ts'
import { copyDescriptor, openProcess, pendingBytes, widenPipe } from '../host/process.ts'

/**
 * Opens the guest of a jail that runs, by the pid of its nsjail, to copy descriptors from it. Undefined where Linux does not let
 * this server: it may trace what runs in its jails as root and as their owner, but a container's policy may forbid that.
 */
export function openGuestDescriptors(nsjail: number): GuestDescriptors | undefined {
  let guest: Descriptor | undefined
  try {
    const pid = findGuest(nsjail)
    guest = openProcess(pid)
    // The guest may have ended before this process opened it, and its pid may have become another process's.
    if (findGuest(nsjail) !== pid) throw new Error('the guest has ended')
    const opened = guest
    // Every guest has a standard input, so that copying it shows once whether descriptors can be copied.
    copyDescriptor(opened, 0).close()
    return {
      take: number => copyDescriptor(opened, number),
      pendingBytes,
      widenPipe,
      maxFileBytes: () => readMaxFileBytes(pid),
      close: opened.close,
    }
  } catch {
    guest?.close()
    return undefined
  }
}

function readMaxFileBytes(pid: number): number | undefined {
  try {
    const [, limit] = /^Max file size +(\d+|unlimited) /m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1')) ?? []
    return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit ?? 0)
  } catch {
    return undefined
  }
}

/** The guest is process 1 of its jail, and the only child of nsjail. Throws when the jail has ended. */
export function findGuest(nsjail: number): number {
  const pid = Number.parseInt(readFileSync(`/proc/${nsjail}/task/${nsjail}/children`, 'latin1'), 10)
  if (!(pid > 1)) throw new Error('the jail has no process')
  return pid
}
