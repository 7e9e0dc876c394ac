/** Calls that Docker's own profile gives to a container without privileges, less what is refused or `limited` below. */
const allowed = `
  accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown chroot clock_getres clock_gettime
  clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl
  epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64
  fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork
  fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat
  get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername
  getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname
  getsockopt gettid gettimeofday getuid getxattr getxattrat inotify_add_watch inotify_init inotify_init1 inotify_rm_watch
  io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit ioprio_get ioprio_set kill landlock_add_rule
  landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen listmount listxattr listxattrat
  llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mkdir
  mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend
  mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat
  openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv
  preadv2 process_mrelease pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg
  recvmsg remap_file_pages removexattr removexattrat rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction
  rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
  sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
  sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select
  semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address setfsgid
  setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setsid setsockopt setuid
  setxattr setxattrat shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 splice stat statfs
  statmount statx symlink symlinkat sync sync_file_range sync_file_range2 syncfs sysinfo tee tgkill time timer_create
  timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill
  truncate umask uname unlink unlinkat utime utimensat utimes vfork vmsplice wait4 waitid write writev
`

/** Answered with "no such call", so that programs fall back: a filter cannot see the arguments of these. */
const absent = 'clone3 io_uring_setup io_uring_enter io_uring_register'

const ENOSYS = 38
/** Flags of clone that make namespaces. */
const NAMESPACES = 0x7e020000
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: none that leads past the network namespace. */
const families = [1, 2, 10, 16]
/** TIOCSTI, TIOCLINUX: they type on a terminal. */
const typing = [0x5412, 0x541c]
const RLIMIT_LOCKS = 10
const RLIMIT_RSS = 5
const RLIMITS = 16
/** Linux, its 32-bit and UNAME26 kinds, without address randomisation, and the question what it is. */
const personalities = [0, 8, 0x20000, 0x20008, 0x40000, 0xffffffff]

interface Condition {
  index: number
  op: 'SCMP_CMP_MASKED_EQ' | 'SCMP_CMP_EQ'
  value: number
  valueTwo: number
}

/** The kernel reads 32 bits of most arguments: a high bit set beside them must not get past a comparison. */
const is = (index: number, value: number, mask = 0xffffffff): Condition => ({
  index,
  op: 'SCMP_CMP_MASKED_EQ',
  value: mask,
  valueTwo: value,
})

/** Matches every 32-bit value but these, in as few comparisons of leading bits as possible. */
function isNone(index: number, values: readonly number[], bit = 31, prefix = 0): Condition[] {
  if (values.length === 0) return [is(index, prefix, (-1 << (bit + 1)) >>> 0)]
  if (bit < 0) return []
  return [0, 1].flatMap(digit => {
    const branch = values.filter(value => ((value >>> bit) & 1) === digit)
    return isNone(index, branch, bit - 1, (prefix | (digit << bit)) >>> 0)
  })
}

const allLimits = Array.from({ length: RLIMITS }, (_, limit) => limit)

/** Calls that are allowed by their arguments; each list of conditions is one way. */
const limited = (
  marks: readonly number[],
  limits = allLimits.filter(limit => !marks.includes(limit)),
): Record<string, Condition[][]> => ({
  clone: [[is(0, 0, NAMESPACES)]],
  socket: families.map(family => [is(0, family)]),
  socketpair: [[is(0, 1)]],
  ioctl: isNone(1, typing).map(condition => [condition]),
  personality: personalities.map(persona => [is(0, persona)]),
  // A limit is the guest's mark on the processes that it starts, so it may be changed for process 1 alone.
  setrlimit: limits.map(limit => [is(0, limit)]),
  // No other limit of process 1 is changed, by a thread's id either: without files or threads the guest cannot work.
  prlimit64: [
    [{ index: 2, op: 'SCMP_CMP_EQ', value: 0, valueTwo: 0 }],
    ...limits.map(limit => [is(0, 0), is(1, limit)]),
    ...marks.map(limit => [is(0, 1), is(1, limit)]),
  ],
})

const action = 'SCMP_ACT_ALLOW'

/**
 * What a container may ask of the kernel, as engines read it. Docker's own profile, but as nsjail's jails have it:
 * no tracing, no other process's memory, no namespaces, no vsock, no io_uring, and no way to change the guest's marks:
 * file locks, and also the resident set where the runtime is one `ofChoice`, whose kernel may be gVisor.
 * gVisor replaces the errno of a profile by its own. Where a call shall look as if it did not exist, the profile traces it instead:
 * on gVisor too, a traced call without a tracer fails with ENOSYS.
 */
export function seccompProfile(architecture: 'x64' | 'arm64', { ofChoice = false } = {}): string {
  const byArguments = Object.entries(limited(ofChoice ? [RLIMIT_LOCKS, RLIMIT_RSS] : [RLIMIT_LOCKS]))
  return JSON.stringify({
    defaultAction: 'SCMP_ACT_ERRNO',
    architectures: [architecture === 'arm64' ? 'SCMP_ARCH_AARCH64' : 'SCMP_ARCH_X86_64'],
    syscalls: [
      { names: allowed.trim().split(/\s+/), action },
      {
        names: absent.split(' '),
        ...(ofChoice ? { action: 'SCMP_ACT_TRACE' } : { action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS }),
      },
      ...byArguments.flatMap(([name, ways]) => ways.map(args => ({ names: [name], action, args }))),
    ],
  })
}
