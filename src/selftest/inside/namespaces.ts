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

/** Linux refuses a clone with this flag and without CLONE_VM: a clone that reaches the kernel ends with EINVAL. */
const CLONE_SIGHAND = 0x800
/** With a user namespace, these namespaces need no capability. */
const { user } = flags

const made =
  (flag: number): Program =>
  ({ refused }) => {
    refused('unshare', () => syscall('unshare', flag))
    refused('clone', () => syscall('clone', flag | user | CLONE_SIGHAND, 0, 0, 0, 0))
  }

/** A user namespace would give root inside capabilities over parts of the kernel that few people have examined. */
export const namespaces: Programs = {
  ...Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, made(flag)])),
  clone3({ refused }) {
    // A filter cannot read this call's arguments, so the sandbox must not have the call at all.
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
    // The address is not mapped, so that Linux changes nothing.
    refused('sethostname', () => syscall('sethostname', null, 1))
    refused('setdomainname', () => syscall('setdomainname', null, 1))
  },
  /** Says for the probe which namespaces it is in. */
  own({ found }) {
    for (const name of ['mnt', 'net', 'pid', 'uts', 'ipc']) found(readlinkSync(`/proc/self/ns/${name}`))
  },
}
