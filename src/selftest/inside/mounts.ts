import { mkdirSync, renameSync, rmdirSync } from 'node:fs'
import type { Attempt, Program, Programs } from './program.ts'
import { syscall } from './syscall.ts'

const MS_REMOUNT = 32
const MS_BIND = 4096
const MS_REC = 16384
const MS_PRIVATE = 1 << 18
const MS_SHARED = 1 << 20
const MNT_DETACH = 2
const OPEN_TREE_CLONE = 1
const CURRENT_DIRECTORY = -100
const ATTRIBUTE_BYTES = 32

/** Unmounts at once what it could mount. A mount covers only a directory of the program's own. */
function tryMount({ refused }: Attempt, kind: string, options: string | null = null): void {
  mkdirSync('place', { recursive: true })
  refused(`a mount of ${kind}`, () => {
    syscall('mount', 'none', 'place', kind, 0, options)
    syscall('umount2', 'place', MNT_DETACH)
  })
}

const mounted =
  (...kinds: string[]): Program =>
  attempt => {
    for (const kind of kinds) tryMount(attempt, kind)
  }

/**
 * The program makes this call on a directory where nothing is mounted: Linux answers EINVAL to a caller who may mount, and changes
 * nothing.
 */
const tried =
  (call: string, work: () => unknown): Program =>
  ({ refused }) => {
    mkdirSync('place')
    refused(call, work)
  }

export const mounts: Programs = {
  tmpfs: mounted('tmpfs'),
  kernel: mounted('proc', 'sysfs', 'debugfs', 'tracefs', 'securityfs', 'bpf'),
  cgroup: mounted('cgroup', 'cgroup2'),
  devices: mounted('devtmpfs', 'devpts'),
  overlay(attempt) {
    for (const name of ['upper', 'work']) mkdirSync(name)
    tryMount(attempt, 'overlay', 'lowerdir=/,upperdir=upper,workdir=work')
  },
  bind({ refused }) {
    mkdirSync('place')
    refused('a bind of /', () => {
      syscall('mount', '/', 'place', null, MS_BIND, null)
      syscall('umount2', 'place', MNT_DETACH)
    })
  },
  remount: tried('a remount', () => syscall('mount', 'none', 'place', null, MS_REMOUNT | MS_BIND, null)),
  propagation({ refused }) {
    mkdirSync('place')
    for (const [name, flag] of Object.entries({ shared: MS_SHARED, private: MS_PRIVATE })) {
      refused(`a mount made ${name}`, () => syscall('mount', 'none', 'place', null, flag | MS_REC, null))
    }
  },
  unmount: tried('an unmount', () => syscall('umount2', 'place', 0)),
  'pivot-root': tried('pivot_root', () => syscall('pivot_root', 'place', 'place')),
  'file-system-contexts'({ refused }) {
    refused('fsopen', () => syscall('fsopen', 'tmpfs', 0))
    refused('fspick', () => syscall('fspick', CURRENT_DIRECTORY, '/', 0))
    refused('fsconfig', () => syscall('fsconfig', -1, 0, null, null, 0))
    refused('fsmount', () => syscall('fsmount', -1, 0, 0))
  },
  'open-tree'({ refused }) {
    refused('open_tree', () => syscall('open_tree', CURRENT_DIRECTORY, '/', OPEN_TREE_CLONE))
  },
  move: tried('move_mount', () => syscall('move_mount', CURRENT_DIRECTORY, 'place', CURRENT_DIRECTORY, 'place', 0)),
  attributes: tried('mount_setattr', () =>
    syscall('mount_setattr', CURRENT_DIRECTORY, 'place', 0, Buffer.alloc(ATTRIBUTE_BYTES), ATTRIBUTE_BYTES),
  ),
  replace({ refused }) {
    for (const path of ['/proc', '/dev', '/dev/shm', '/dev/.threadbox']) {
      refused(`a move of ${path}`, () => {
        renameSync(path, `${path}-moved`)
        renameSync(`${path}-moved`, path)
      })
      refused(`a removal of ${path}`, () => {
        rmdirSync(path)
        mkdirSync(path)
      })
    }
  },
}
