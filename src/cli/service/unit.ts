/** What a unit depends on. */
export interface UnitOptions {
  executable: string
  environmentFile: string
  backends: readonly string[]
  dataDirectory: string
  /** An account of the machine. Absent: the account that the backend needs. */
  user?: string
  /** Further groups of the account. */
  groups: readonly string[]
}

/** The directory that systemd makes for the service. */
export const STATE_DIRECTORY = '/var/lib/threadbox'

/** Backends whose sandboxes are not processes of the server: it needs no rights, and a dynamic account is enough. */
const remote = ['docker', 'e2b']

export const isRemote = (backends: readonly string[]): boolean => backends.every(each => remote.includes(each))

/** The text of a server's systemd unit. It restricts everything but what jails need; each exception says why. */
export function unitText({ executable, environmentFile, backends, dataDirectory, user, groups }: UnitOptions): string {
  const account = user ? [`User=${user}`] : isRemote(backends) ? ['User=threadbox', 'DynamicUser=yes'] : []
  const isOwnDirectory = dataDirectory === STATE_DIRECTORY
  return `# Written by threadbox service install, which writes it again. Own settings: systemctl edit threadbox
[Unit]
Description=threadbox, a runtime for AI agents
Wants=network-online.target
After=network-online.target docker.service
StartLimitIntervalSec=0

[Service]
# It says when it answers, and each 20 s that it goes on.
Type=notify
TimeoutStartSec=600
WatchdogSec=60
ExecStart=${quote(executable)} serve
Environment=${quote(`THREADBOX_DATA_DIR=${dataDirectory}`)}
EnvironmentFile=${environmentFile}
${[...account, ...(groups.length > 0 ? [`SupplementaryGroups=${groups.join(' ')}`] : [])].map(line => `${line}\n`).join('')}\
StateDirectory=threadbox
StateDirectoryMode=0700
RuntimeDirectory=threadbox
RuntimeDirectoryMode=0711
RuntimeDirectoryPreserve=yes
LimitNOFILE=524288
TasksMax=infinity
Restart=always
RestartSec=1
# A wrong setting does not mend itself.
RestartPreventExitStatus=2
TimeoutStopSec=60

# Sandboxes outlive a restart of the server, and one that runs out of memory is no reason to stop it.
KillMode=process
OOMPolicy=continue
Delegate=yes

NoNewPrivileges=yes
ProtectSystem=strict
${isOwnDirectory ? '' : `ReadWritePaths=${quote(dataDirectory)}\n`}\
ProtectHome=read-only
PrivateTmp=yes
ProtectKernelModules=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
${isRemote(backends) ? closed : forJails(user === undefined || user === 'root')}
[Install]
WantedBy=multi-user.target
`
}

const closed = `UMask=0077
SystemCallFilter=@system-service
CapabilityBoundingSet=
RestrictNamespaces=yes
RestrictSUIDSGID=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelTunables=yes
ProtectProc=invisible
`

const capabilities = [
  ...['CHOWN', 'DAC_OVERRIDE', 'DAC_READ_SEARCH', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE'],
  ...['SETFCAP', 'SETGID', 'SETPCAP', 'SETUID', 'SYS_ADMIN', 'SYS_CHROOT', 'SYS_PTRACE', 'SYS_RESOURCE'],
]

/** Not used, and why: ProtectKernelTunables, ProtectKernelLogs and ProtectProc cover parts of /proc, and Linux then lets
 * no jail mount its own; ProtectHostname forbids a jail its name; RestrictNamespaces and PrivateDevices (loop devices)
 * are what jails are made of; RestrictSUIDSGID would hold for packages that are installed inside; with another UMask a
 * jail's root could not enter what nsjail makes for it. */
const forJails = (isRoot: boolean): string => `# Jails inherit this filter; theirs is stricter.
SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap
CapabilityBoundingSet=${isRoot ? capabilities.map(name => `CAP_${name}`).join(' ') : ''}
`

/** Quotes a word for a line of a unit. */
const quote = (word: string): string =>
  /^[\w./:@=-]+$/.test(word) ? word : `"${word.replace(/["\\]/g, '\\$&').replaceAll('%', '%%')}"`
