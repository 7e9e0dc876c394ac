import { readFileSync } from 'node:fs'
import { numberOf } from './call-numbers.ts'
import type { Programs } from './program.ts'
import { syscall } from './syscall.ts'
import { openThreads } from './threads.ts'

/** The kernel reads only 32 bits of many arguments: a higher bit passes a filter that compares 64 of them. */
const HIGH = 1n << 32n
/** This bit is added to a call's number. */
const X32 = 0x4000_0000

const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c
const READ_IMPLIES_EXEC = 0x0040_0000
const CURRENT_DIRECTORY = -100
const SYSLOG_READ_ALL = 3
const SYSLOG_SIZE_BUFFER = 10
const BPF_PROG_LOAD = 5
const KEYCTL_GET_KEYRING_ID = 0
const SESSION_KEYRING = -3

const families = { key: 15, netlink: 16, packet: 17, rds: 21, tipc: 30, alg: 38, vsock: 40, xdp: 44 }
const STREAM = 1
const DATAGRAM = 2
const RAW = 3
const SEQUENCED = 5
const NETLINK_AUDIT = 9
const PF_KEY_V2 = 2
const VSOCK_HOST = 2

/** The names are in the order of their bits, as in linux/capability.h. */
const capabilities = [
  ...['CHOWN', 'DAC_OVERRIDE', 'DAC_READ_SEARCH', 'FOWNER', 'FSETID', 'KILL', 'SETGID', 'SETUID', 'SETPCAP'],
  ...['LINUX_IMMUTABLE', 'NET_BIND_SERVICE', 'NET_BROADCAST', 'NET_ADMIN', 'NET_RAW', 'IPC_LOCK', 'IPC_OWNER'],
  ...['SYS_MODULE', 'SYS_RAWIO', 'SYS_CHROOT', 'SYS_PTRACE', 'SYS_PACCT', 'SYS_ADMIN', 'SYS_BOOT', 'SYS_NICE'],
  ...['SYS_RESOURCE', 'SYS_TIME', 'SYS_TTY_CONFIG', 'MKNOD', 'LEASE', 'AUDIT_WRITE', 'AUDIT_CONTROL', 'SETFCAP'],
  ...['MAC_OVERRIDE', 'MAC_ADMIN', 'SYSLOG', 'WAKE_ALARM', 'BLOCK_SUSPEND', 'AUDIT_READ', 'PERFMON', 'BPF'],
  'CHECKPOINT_RESTORE',
]

/** The calls that root inside makes. Their arguments are such that nothing happens where a call is allowed. */
export const systemCalls: Programs = {
  filter({ found }) {
    const status = readFileSync('/proc/self/status', 'latin1')
    if (!/^Seccomp:\t2$/m.test(status)) found('no filter of system calls is in force')
    if (!/^NoNewPrivs:\t1$/m.test(status)) found('a program that is setuid or has capabilities gains them')
  },
  /** The words name the capabilities that the sandbox may have. */
  capabilities({ found, words }) {
    const status = readFileSync('/proc/self/status', 'latin1')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
      const line = status.split('\n').find(each => each.startsWith(`${set}:`)) ?? `${set}:\t0`
      const bits = BigInt(`0x${line.slice(set.length + 1).trim()}`)
      const names = [...Array(64).keys()].filter(bit => (bits >> BigInt(bit)) & 1n).map(bit => capabilities[bit] ?? bit)
      const more = names.filter(name => !words.includes(String(name)))
      if (more.length > 0) found(`${set} has ${more.join(', ')}`)
    }
  },
  'kernel-modules'({ refused }) {
    refused('init_module', () => syscall('init_module', Buffer.from('x'), 1, ''))
    refused('finit_module', () => syscall('finit_module', -1, '', 0))
    refused('delete_module', () => syscall('delete_module', 'threadbox_none', 0))
  },
  kexec({ refused }) {
    // Linux takes fewer segments than this, so that it loads nothing.
    refused('kexec_load', () => syscall('kexec_load', 0, 1_000_000, null, 0))
    refused('kexec_file_load', () => syscall('kexec_file_load', -1, -1, 0, null, 0))
  },
  bpf({ refused }) {
    refused('bpf', () => syscall('bpf', BPF_PROG_LOAD, Buffer.alloc(128), 128))
  },
  'perf-events'({ refused }) {
    refused('perf_event_open', () => syscall('perf_event_open', Buffer.alloc(128), 0, -1, -1, 0))
  },
  userfaultfd({ refused }) {
    refused('userfaultfd', () => syscall('userfaultfd', 0))
  },
  fanotify({ refused }) {
    refused('fanotify_init', () => syscall('fanotify_init', 0, 0))
  },
  keyrings({ refused }) {
    refused('keyctl', () => syscall('keyctl', KEYCTL_GET_KEYRING_ID, SESSION_KEYRING, 0))
    refused('add_key', () => syscall('add_key', 'user', 'threadbox', Buffer.from('x'), 1, SESSION_KEYRING))
    refused('request_key', () => syscall('request_key', 'user', 'threadbox', null, 0))
  },
  reboot({ refused }) {
    // Without the two magic numbers the call does nothing.
    refused('reboot', () => syscall('reboot', 0, 0, 0, null))
  },
  clocks({ refused }) {
    refused('settimeofday', () => syscall('settimeofday', null, null))
    refused('clock_settime', () => syscall('clock_settime', 0, null))
    // No clock has this number.
    refused('clock_adjtime', () => syscall('clock_adjtime', 1_000, Buffer.alloc(256)))
  },
  swap({ refused }) {
    refused('swapon', () => syscall('swapon', '/threadbox-none', 0))
    refused('swapoff', () => syscall('swapoff', '/threadbox-none'))
  },
  'kernel-log'({ refused }) {
    refused('syslog', () => syscall('syslog', SYSLOG_READ_ALL, Buffer.alloc(64), 64))
    refused('the size of it', () => syscall('syslog', SYSLOG_SIZE_BUFFER, null, 0))
  },
  'io-ports'({ refused }) {
    refused('iopl', () => syscall('iopl', 3))
    refused('ioperm', () => syscall('ioperm', 0x80, 1, 1))
  },
  accounting({ refused }) {
    refused('acct', () => syscall('acct', '/threadbox-none'))
    refused('quotactl', () => syscall('quotactl', -1, null, 0, null))
    refused('quotactl_fd', () => syscall('quotactl_fd', -1, 0, 0, null))
  },
  'io-uring'({ refused }) {
    refused('io_uring_setup', () => syscall('io_uring_setup', 1, Buffer.alloc(120)))
    refused('io_uring_enter', () => syscall('io_uring_enter', -1, 0, 0, 0, null, 0))
    refused('io_uring_register', () => syscall('io_uring_register', -1, 0, null, 0))
  },
  'file-handles'({ refused }) {
    const handle = Buffer.alloc(256)
    handle.writeUInt32LE(128)
    refused('name_to_handle_at', () => syscall('name_to_handle_at', CURRENT_DIRECTORY, '/', handle, Buffer.alloc(8), 0))
    refused('open_by_handle_at', () => syscall('open_by_handle_at', CURRENT_DIRECTORY, handle, 0))
  },
  'memory-placement'({ refused }) {
    refused('mbind', () => syscall('mbind', null, 0, 0, null, 0, 0))
    refused('set_mempolicy', () => syscall('set_mempolicy', 0, null, 0))
    refused('migrate_pages', () => syscall('migrate_pages', 0, 0, null, null))
    refused('move_pages', () => syscall('move_pages', 0, 0, null, null, null, 0))
  },
  personality({ refused }) {
    refused('personality', () => syscall('personality', READ_IMPLIES_EXEC))
  },
  'typing-on-terminals'({ refused }) {
    for (const [name, request] of Object.entries({ TIOCSTI, TIOCLINUX })) {
      refused(name, () => syscall('ioctl', 0, request, Buffer.from('x')))
    }
  },
  vsock({ refused }) {
    for (const [name, kind] of Object.entries({ stream: STREAM, datagram: DATAGRAM })) {
      refused(`a ${name} of vsock`, () => {
        const socket = syscall('socket', families.vsock, kind, 0)
        const address = Buffer.alloc(16)
        address.writeUInt16LE(families.vsock)
        address.writeUInt32LE(22, 4)
        address.writeUInt32LE(VSOCK_HOST, 8)
        syscall('connect', socket, address, address.byteLength)
      })
    }
  },
  'packet-sockets'({ refused }) {
    for (const kind of [RAW, DATAGRAM]) refused('a packet socket', () => syscall('socket', families.packet, kind, 0))
    refused('a socket of XDP', () => syscall('socket', families.xdp, RAW, 0))
  },
  'audit-log'({ refused }) {
    // Anybody may make the socket where the kernel has an audit log. Only the machine's root may listen to it.
    const listen = () => {
      const address = Buffer.alloc(12)
      address.writeUInt16LE(families.netlink)
      address.writeUInt32LE(1, 8)
      syscall('bind', syscall('socket', families.netlink, RAW, NETLINK_AUDIT), address, address.byteLength)
    }
    refused('the audit log', listen, ['EPROTONOSUPPORT'])
  },
  'kernel-crypto'({ refused }) {
    refused("a socket of the kernel's ciphers", () => syscall('socket', families.alg, SEQUENCED, 0))
  },
  'rare-sockets'({ refused }) {
    refused('a key socket', () => syscall('socket', families.key, RAW, PF_KEY_V2))
    refused('an RDS socket', () => syscall('socket', families.rds, SEQUENCED, 0))
    // A kernel without TIPC answers with this code.
    refused('a TIPC socket', () => syscall('socket', families.tipc, STREAM, 0), ['EAFNOSUPPORT'])
  },
  'high-bits'({ refused }) {
    refused('a socket of vsock', () => syscall('socket', BigInt(families.vsock) | HIGH, STREAM, 0))
    refused('a packet socket', () => syscall('socket', BigInt(families.packet) | HIGH, RAW, 0))
    refused('typing on a terminal', () => syscall('ioctl', 0, BigInt(TIOCSTI) | HIGH, Buffer.from('x')))
  },
  x32({ found }) {
    // The call is made in a thread, because a filter may kill that. No filter refuses this call by its own number.
    const result = openThreads().call(X32 | (numberOf('getpid') ?? 0))
    if (result !== undefined && result !== -1) found('getpid of x32 was not refused')
  },
}
