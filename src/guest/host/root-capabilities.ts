/**
 * What root of a sandbox may do, without `CAP_`. Docker's set less NET_RAW and MKNOD: enough for package managers and for
 * changing users.
 */
export const rootCapabilities: readonly string[] = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'SETUID',
  'SETGID',
  'SETPCAP',
  'SETFCAP',
  'KILL',
  'NET_BIND_SERVICE',
  'SYS_CHROOT',
  'AUDIT_WRITE',
]
