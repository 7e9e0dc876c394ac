/** The kernel reads 32 bits of such an argument: a high bit set beside them must not get past the comparison. */
const isOneOf = (argument: string, values: number[]) =>
  values.map(value => `(${argument} & 0xffffffff) == ${value}`).join(' || ')

/**
 * The numbers of the x32 variants of all calls, on kernels that have them: a name means the plain number alone. A kernel has
 * 548, and kafel has no ranges.
 */
const x32Calls = Array.from({ length: 640 }, (_, number) => `SYSCALL[${0x40000000 + number}]`).join(', ')

/** The limit of file locks, as setrlimit and prlimit name it. */
const locks = isOneOf('resource', [10])

/**
 * System calls that a jail may not use, in kafel's language: mounts and namespaces (also by clone's flags), tracing,
 * keys, kernel modules, clocks, vsock and other ways past the network namespace, terminal injection. clone3 and
 * io_uring answer "no such call", so that programs fall back: a filter cannot see their arguments. The limit of file
 * locks (10) is the guest's mark on what it starts: it is changed for pid 1 alone, and by nothing else that wants to hide.
 * No other limit of another process is changed, by its threads' ids either: without files or threads the guest cannot work.
 */
export const seccompPolicy = `POLICY threadbox {
  ERRNO(38) { clone3, io_uring_setup, io_uring_enter, io_uring_register },
  ERRNO(1) {
    mount, umount, pivot_root, fsopen, fsconfig, fsmount, fspick, move_mount, open_tree, open_tree_attr, mount_setattr,
    setns, unshare,
    clone(clone_flags) { (clone_flags & 0x7E020000) != 0 },
    ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd, process_madvise,
    bpf, perf_event_open, userfaultfd, fanotify_init, open_by_handle_at, name_to_handle_at,
    keyctl, add_key, request_key,
    kexec_load, kexec_file_load, init_module, finit_module, delete_module,
    reboot, swapon, swapoff, acct, quotactl, quotactl_fd, syslog,
    settimeofday, clock_settime, clock_adjtime, adjtimex,
    iopl, ioperm, modify_ldt, vhangup, lookup_dcookie,
    mbind, set_mempolicy, migrate_pages, move_pages, set_mempolicy_home_node,
    socket(family) { ${isOneOf('family', [38, 40, 15, 44, 21, 17])} },
    ioctl(fd, cmd) { ${isOneOf('cmd', [0x5412, 0x541c])} },
    setrlimit(resource) { ${locks} },
    prlimit64(pid, resource, limit) {
      limit != 0 && ((pid != 0 && pid != 1) || (pid == 0 && ${locks}) || (pid == 1 && (resource & 0xffffffff) != 10))
    },
    personality(persona) { persona != 0 && persona != 0xffffffff && persona != 0x0040000 },
    ${x32Calls}
  }
}
USE threadbox DEFAULT ALLOW`
