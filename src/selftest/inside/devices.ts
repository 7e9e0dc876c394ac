import { closeSync, constants, openSync } from 'node:fs'
import type { Attempt, Program, Programs } from './program.ts'
import { syscall } from './syscall.ts'

const S_IFCHR = 0o020000
const S_IFBLK = 0o060000
const FOR_OWNER = 0o600
const CURRENT_DIRECTORY = -100

interface Device {
  name: string
  major: number
  minor: number
  isBlock?: boolean
}

/** Makes a device node and opens it; when the node cannot be made, there is nothing to open. It reads and writes nothing. */
function tryNode({ refused }: Attempt, { name, major, minor, isBlock = false }: Device): void {
  refused(`a node of ${name}`, () => {
    syscall('mknodat', CURRENT_DIRECTORY, name, (isBlock ? S_IFBLK : S_IFCHR) | FOR_OWNER, (major << 8) | minor)
    tryOpen(name)
  })
}

function tryOpen(path: string): void {
  closeSync(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY))
}

const reached =
  (nodes: readonly Device[], paths: readonly string[]): Program =>
  attempt => {
    for (const node of nodes) tryNode(attempt, node)
    for (const path of paths) attempt.refused(path, () => tryOpen(path))
  }

const MISCELLANEOUS = 10

export const devices: Programs = {
  disks: reached(
    [
      { name: 'sda', major: 8, minor: 0, isBlock: true },
      { name: 'vda', major: 254, minor: 0, isBlock: true },
      { name: 'nvme', major: 259, minor: 0, isBlock: true },
      { name: 'mapper', major: 253, minor: 0, isBlock: true },
    ],
    ['/dev/sda', '/dev/vda', '/dev/xvda', '/dev/nvme0', '/dev/nvme0n1', '/dev/dm-0', '/dev/mapper/control'],
  ),
  loops: reached(
    [
      { name: 'loop', major: 7, minor: 0, isBlock: true },
      { name: 'loop-control', major: MISCELLANEOUS, minor: 237 },
    ],
    ['/dev/loop0', '/dev/loop-control'],
  ),
  memory: reached(
    [
      { name: 'mem', major: 1, minor: 1 },
      { name: 'port', major: 1, minor: 4 },
    ],
    ['/dev/mem', '/dev/kmem', '/dev/port', '/dev/nvram', '/dev/cpu/0/msr'],
  ),
  'kernel-log': reached([{ name: 'kmsg', major: 1, minor: 11 }], ['/dev/kmsg']),
  'virtual-machines': reached([{ name: 'kvm', major: MISCELLANEOUS, minor: 232 }], ['/dev/kvm']),
  fuse: reached([{ name: 'fuse', major: MISCELLANEOUS, minor: 229 }], ['/dev/fuse']),
  tunnels: reached([{ name: 'tun', major: MISCELLANEOUS, minor: 200 }], ['/dev/net/tun', '/dev/vhost-net', '/dev/ppp']),
  vsock: reached([], ['/dev/vsock', '/dev/vhost-vsock']),
  input: reached(
    [{ name: 'event', major: 13, minor: 64 }],
    ['/dev/input/event0', '/dev/input/mice', '/dev/uinput', '/dev/uhid', '/dev/dri/card0', '/dev/snd/controlC0'],
  ),
  consoles: reached(
    [
      { name: 'console', major: 5, minor: 1 },
      { name: 'tty0', major: 4, minor: 0 },
      { name: 'screen', major: 7, minor: 0 },
    ],
    ['/dev/console', '/dev/tty0', '/dev/tty1', '/dev/ttyS0', '/dev/vcs', '/dev/hvc0'],
  ),
}
