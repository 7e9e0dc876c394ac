/** All options at once: each alone only leads to the next refusal. */
const CONTAINER =
  'run it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined, as root also --cap-add SYS_ADMIN'

/** Remedies for messages of nsjail that were seen on restricted hosts. */
const known: { pattern: RegExp; remedy: (nsjail: string) => string }[] = [
  {
    pattern: /clone.*(No space left on device|ENOSPC)/,
    remedy: () => 'User namespaces are off: sysctl user.max_user_namespaces=15000',
  },
  {
    pattern: /procfs mount may fail/,
    remedy: () => `The container hides parts of /proc: ${CONTAINER}`,
  },
  {
    pattern: /mount\('\/'.*Permission denied|uid map.*Permission denied|uid_map.*(Permission denied|not permitted)/i,
    remedy: nsjail =>
      `AppArmor forbids user namespaces: give ${nsjail} a profile with 'userns,', or sysctl kernel.apparmor_restrict_unprivileged_userns=0`,
  },
  {
    pattern: /^(mount|move_mount|open_tree) .*EPERM/,
    remedy: () =>
      'This root may not mount: give the container --cap-add SYS_ADMIN, or run it as an ordinary user (docker run --user 1000), or on the host',
  },
  {
    pattern: /(clone|pivot_root).*(Operation not permitted|EPERM)/,
    remedy: () =>
      `Namespaces are forbidden, as in a chroot or a container with the default profile: ${CONTAINER}, or on the host`,
  },
  {
    pattern: /overlay.*Invalid argument|Invalid argument.*overlay|fsconfig/,
    remedy: () => 'Overlays do not work on this file system: put the data directory on a volume, ext4, xfs or tmpfs',
  },
  {
    pattern: /mount_setattr.*(EINVAL|ENOSYS|EOPNOTSUPP)/,
    remedy: () =>
      'Idmapped mounts need Linux 5.19 and a file system that has them: put the data directory on ext4 or xfs',
  },
  {
    pattern: /EACCES.*posix_spawn/,
    remedy: nsjail =>
      `${nsjail} may not be run: put the data directory on a file system without noexec, as docker run --tmpfs /tmp:exec gives`,
  },
  {
    pattern: /error while loading shared libraries|GLIBC|ENOENT|No such file/,
    remedy: () => 'This nsjail does not run here: install one built for this system and name it with --nsjail-path',
  },
]

export function remedyFor(problem: string, nsjail: string): string | undefined {
  return known.find(({ pattern }) => pattern.test(problem))?.remedy(nsjail)
}
