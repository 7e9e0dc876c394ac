import { closeSync, openSync, readlinkSync } from 'node:fs'
import type { Program, Programs } from './program.ts'
import { syscall } from './syscall.ts'

const flags = {
  user: 0x1000_0000,
  mount: 0x2_0000,
  network: 0x4000_0000,
  processes: 0x2000_0000,
  'host-name': 0x400_0000,
  ipc: 0x800_0000,
  cgroup: 0x200_0000,
} as const

/** Linux makes no child with this flag and without CLONE_VM: a clone that it is let in to see ends with EINVAL. */
const CLONE_SIGHAND = 0x800
/** What is made with a user namespace needs no capability. */
const { user } = flags

const made =
  (flag: number): Program =>
  ({ refused }) => {
    refused('unshare', () => syscall('unshare', flag))
    refused('clone', () => syscall('clone', flag | user | CLONE_SIGHAND, 0, 0, 0, 0))
  }

/** Namespaces of its own would give root inside capabilities over parts of the kernel that nobody has looked at so well. */
export const namespaces: Programs = {
  ...Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, made(flag)])),
  clone3({ refused }) {
    // No filter can look at its arguments, so it must not be there at all.
    const size = 88
    const options = Buffer.alloc(size)
    options.writeBigUInt64LE(BigInt(user | CLONE_SIGHAND))
    refused('clone3', () => syscall('clone3', options, size))
  },
  join({ refused }) {
    for (const name of ['user', 'mnt', 'net', 'pid', 'uts', 'ipc', 'cgroup']) {
      for (const pid of ['1', 'self']) {
        refused(`the namespace ${name} of process ${pid}`, () => {
          const file = openSync(`/proc/${pid}/ns/${name}`, 'r')
          try {
            syscall('setns', file, 0)
          } finally {
            closeSync(file)
          }
        })
      }
    }
    refused('setns', () => syscall('setns', -1, 0))
  },
  'rename-host'({ refused }) {
    // An address that is not mapped: Linux changes nothing.
    refused('sethostname', () => syscall('sethostname', null, 1))
    refused('setdomainname', () => syscall('setdomainname', null, 1))
  },
  /** Says which namespaces it is in, for the probe. */
  own({ found }) {
    for (const name of ['mnt', 'net', 'pid', 'uts', 'ipc']) found(readlinkSync(`/proc/self/ns/${name}`))
  },
}
