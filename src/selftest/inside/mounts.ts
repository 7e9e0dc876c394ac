import type { Programs } from './program.ts'
import { syscall } from './syscall.ts'

const MS_BIND = 4096

export const mounts: Programs = {
  bind({ refused }) {
    refused('a bind of /', () => syscall('mount', '/', '/mnt', null, MS_BIND, null))
  },
  tmpfs({ refused }) {
    refused('a tmpfs', () => syscall('mount', 'none', '/mnt', 'tmpfs', 0, null))
  },
}
