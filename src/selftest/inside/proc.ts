import { closeSync, constants, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import type { Attempt, Program, Programs } from './program.ts'

/** Opens the file for writing, and writes nothing. */
const written =
  (...paths: string[]): Program =>
  attempt => {
    for (const path of paths) tryWrite(attempt, path)
  }

function tryWrite({ refused }: Attempt, path: string): void {
  refused(`writing ${path}`, () => closeSync(openSync(path, constants.O_WRONLY)))
}

/** A readable byte of a file, or a visible name in a directory, is already a finding. */
const read =
  (...paths: string[]): Program =>
  ({ found }) => {
    for (const path of paths) if (hasContent(path)) found(`${path} can be read`)
  }

function hasContent(path: string): boolean {
  try {
    if (statSync(path).isDirectory()) return readdirSync(path).length > 0
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      return readSync(file, Buffer.alloc(1)) > 0
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false
    throw error
  }
}

const own = '/proc/sys/kernel'

export const proc: Programs = {
  'started-programs': written(
    ...[`${own}/core_pattern`, `${own}/modprobe`, `${own}/poweroff_cmd`, `${own}/usermodehelper/bset`],
    ...['/proc/sys/fs/binfmt_misc/register', '/sys/kernel/uevent_helper', '/sys/fs/cgroup/release_agent'],
    '/sys/fs/cgroup/memory/release_agent',
  ),
  settings: written(
    ...[`${own}/hostname`, `${own}/randomize_va_space`, `${own}/kptr_restrict`, `${own}/yama/ptrace_scope`],
    ...[`${own}/pid_max`, `${own}/panic`, '/proc/sys/vm/drop_caches', '/proc/sys/vm/overcommit_memory'],
    ...['/proc/sys/vm/mmap_min_addr', '/proc/sys/fs/protected_hardlinks', '/proc/sys/net/ipv4/ip_forward'],
    ...['/proc/irq/default_smp_affinity', '/proc/mtrr', '/proc/acpi/wakeup'],
  ),
  sysrq: written('/proc/sysrq-trigger', `${own}/sysrq`),
  sys: written(
    ...['/sys/kernel/mm/transparent_hugepage/enabled', '/sys/power/state', '/sys/power/disk', '/sys/kernel/mm/ksm/run'],
    ...['/sys/module/kernel/parameters/panic', '/sys/class/net/lo/mtu', '/sys/devices/system/cpu/cpu1/online'],
    ...['/sys/bus/pci/rescan'],
  ),
  cgroups: written(
    ...[
      ...['cgroup.procs', 'memory/cgroup.procs', 'pids/cgroup.procs', 'cpu/cgroup.procs', 'memory.max', 'pids.max'],
      ...['memory/memory.limit_in_bytes', 'pids/pids.max', 'cpu/cpu.cfs_quota_us', 'devices/devices.allow'],
    ].map(name => `/sys/fs/cgroup/${name}`),
  ),
  'kernel-memory': read('/proc/kcore', '/proc/kmem', '/proc/kpagecount', '/proc/kpageflags', '/proc/vmcore'),
  'kernel-messages': read('/proc/kmsg', '/sys/kernel/debug', '/sys/kernel/tracing', '/sys/fs/pstore'),
  'kernel-lists': read(
    ...['/proc/timer_list', '/proc/sched_debug', '/proc/latency_stats', '/sys/firmware/efi', '/sys/firmware/dmi'],
  ),
  'memory-lists': read('/proc/slabinfo', '/proc/pagetypeinfo', '/proc/vmallocinfo'),
  'kernel-addresses'({ found }) {
    // Linux shows only zeros to users who may not know the addresses.
    if (/^0*[1-9a-f]/m.test(contentOf('/proc/kallsyms'))) found('/proc/kallsyms has addresses')
  },
  keys: read('/proc/keys'),
  'other-processes'({ found, words: [word = ''] }) {
    for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)) {
      if (contentOf(`/proc/${pid}/cmdline`).includes(word)) found(`process ${pid} is the host's`)
    }
  },
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    if (error instanceof Error && 'code' in error) return ''
    throw error
  }
}
