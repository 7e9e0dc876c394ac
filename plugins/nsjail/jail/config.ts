import { existsSync } from 'node:fs'
import { rootCapabilities } from '../../../src/guest/host/root-capabilities.ts'
import { SERVER_LISTENS_VARIABLE } from '../../../src/guest/wire/proxy-variables.ts'
import { assertLayerPaths } from './layer-path.ts'
import { seccompPolicy } from './seccomp.ts'
import type { Shown } from './shown.ts'

/** Directory of the guest's files in every jail. It is in /dev, a fresh tmpfs that a jail cannot prepare. */
export const GUEST_INSIDE = '/dev/.threadbox'

export const HOSTNAME = 'sandbox'

/** Maps the jail's ids 0 to count-1 to the host's ids from `firstUid` and `firstGid`. */
export interface IdMapping {
  firstUid: number
  firstGid: number
  count: number
}

export interface JailSpec {
  ids: IdMapping
  /** Host directories. `lowers` are the layers below the writable one, the uppermost first; `guest` has the guest's files. */
  lowers: readonly string[]
  upper: string
  work: string
  guest: string
  /** An empty directory: a read-only overlay needs two layers. */
  empty: string
  /** A file with an id that no other start of any jail has. */
  bootId: string
  /** Directory of the device nodes that the jail gets. */
  devices: string
  /** Directories of the host that are shown read-only at their own path. */
  shown: readonly Shown[]
  /** Layers over the host's /usr/local, so that programs can be installed there. */
  local?: { lowers: readonly string[]; upper: string; work: string }
  /** Limit for each of the jail's users. Undefined when a cgroup limits processes. */
  processesPerUser?: number
  /** Number of processes for commands; the guest keeps the rest of the limit for its threads. */
  processes?: number
  fileSizeMb?: number
  /** True when the server, and not the guest, listens at the proxy's address inside. */
  serverListens?: boolean
  command: readonly string[]
}

const environment = [
  'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  'HOME=/root',
  'LANG=C.UTF-8',
  'USER=root',
]

/** Device nodes of every jail, with their numbers in Linux. */
export const devices = [
  { name: 'null', major: 1, minor: 3 },
  { name: 'zero', major: 1, minor: 5 },
  { name: 'full', major: 1, minor: 7 },
  { name: 'random', major: 1, minor: 8 },
  { name: 'urandom', major: 1, minor: 9 },
  { name: 'tty', major: 5, minor: 0 },
] as const

/** Files of /proc that reveal the host. Not every kernel has each of them. */
const masked = ['/proc/keys', '/proc/cmdline', '/proc/config.gz']

/** Programs compare this id for data that they keep until the next boot: each start of the jail clears what they had in memory. */
const BOOT_ID = '/proc/sys/kernel/random/boot_id'

/** The kernel allows a few thousand for all jails together. */
const MAX_TERMINALS = 128

const links = [
  ['pts/ptmx', '/dev/ptmx'],
  ['/proc/self/fd', '/dev/fd'],
  ['/proc/self/fd/0', '/dev/stdin'],
  ['/proc/self/fd/1', '/dev/stdout'],
  ['/proc/self/fd/2', '/dev/stderr'],
] as const

/**
 * Writes the text that `nsjail --config` reads. Its defaults suit a contest's judge, so every limit is written out: without
 * these lines a jail ends after 600 seconds and no file in it is larger than 1 MiB.
 */
export function jailConfig(spec: JailSpec): string {
  const { ids, local, processes, processesPerUser, fileSizeMb } = spec
  const map = (first: number) => `{ inside_id: "0" outside_id: "${first}" count: ${ids.count} }`
  const [program = '', ...rest] = spec.command
  return [
    `mode: ONCE hostname: ${quote(HOSTNAME)} cwd: "/" log_level: WARNING`,
    'time_limit: 0 nice_level: 0 rlimit_core: 0',
    'rlimit_as_type: INF rlimit_cpu_type: INF rlimit_nofile_type: HARD',
    fileSizeMb === undefined ? 'rlimit_fsize_type: INF' : `rlimit_fsize: ${fileSizeMb} rlimit_fsize_type: VALUE`,
    processesPerUser === undefined
      ? 'rlimit_nproc_type: HARD'
      : `rlimit_nproc: ${processesPerUser} rlimit_nproc_type: VALUE`,
    'clone_newnet: true',
    `uidmap ${map(ids.firstUid)} gidmap ${map(ids.firstGid)}`,
    ...rootCapabilities.map(name => `cap: "CAP_${name}"`),
    ...environment.map(variable => `envar: ${quote(variable)}`),
    ...(processes === undefined ? [] : [`envar: ${quote(`THREADBOX_PROCESSES=${processes}`)}`]),
    ...(spec.serverListens ? [`envar: ${quote(`${SERVER_LISTENS_VARIABLE}=1`)}`] : []),
    overlay('/', spec.lowers, spec.upper, spec.work),
    ...spec.shown.map(({ path, isOverlay }) =>
      isOverlay ? readOnlyOverlay(path, path, spec.empty) : bind(path, path, 'rw: false nosuid: true nodev: true'),
    ),
    ...(local ? [overlay('/usr/local', [...local.lowers, '/usr/local'], local.upper, local.work)] : []),
    'mount { dst: "/proc" fstype: "proc" rw: false nosuid: true nodev: true noexec: true }',
    ...masked.filter(existsSync).map(path => bind(`${spec.devices}/null`, path, 'rw: true mandatory: false')),
    bind(spec.bootId, BOOT_ID, 'rw: false nosuid: true nodev: true noexec: true mandatory: false'),
    'mount { dst: "/dev" fstype: "tmpfs" options: "size=64k,mode=755" rw: true nosuid: true noexec: true }',
    ...devices.map(({ name }) =>
      bind(`${spec.devices}/${name}`, `/dev/${name}`, `rw: true mandatory: ${name !== 'tty'}`),
    ),
    'mount { dst: "/dev/shm" fstype: "tmpfs" options: "size=67108864,mode=1777" rw: true nosuid: true nodev: true }',
    `mount { dst: "/dev/pts" fstype: "devpts" options: "newinstance,ptmxmode=0666,mode=620,max=${MAX_TERMINALS}" rw: true nosuid: true noexec: true }`,
    ...links.map(([target, path]) => `mount { src: ${quote(target)} dst: ${quote(path)} is_symlink: true }`),
    readOnlyOverlay(GUEST_INSIDE, spec.guest, spec.empty),
    `seccomp_string: ${quote(seccompPolicy)}`,
    'pass_fd: 3',
    `exec_bin { path: ${quote(program)} ${rest.map(argument => `arg: ${quote(argument)}`).join(' ')} }`,
    '',
  ].join('\n')
}

/** Without `userxattr`, a jail with its own user namespace cannot remove files of the lower layer. */
function overlay(target: string, lowers: readonly string[], upper: string, work: string): string {
  assertLayerPaths(...lowers, upper, work)
  const options = `lowerdir=${lowers.join(':')},upperdir=${upper},workdir=${work},userxattr`
  return `mount { dst: ${quote(target)} fstype: "overlay" rw: true options: ${quote(options)} }`
}

/** Shows the same files by inodes of the jail's own: see `showDirectory`. */
function readOnlyOverlay(target: string, lower: string, empty: string): string {
  assertLayerPaths(lower, empty)
  const options = `lowerdir=${lower}:${empty},userxattr`
  return `mount { dst: ${quote(target)} fstype: "overlay" rw: false nosuid: true nodev: true options: ${quote(options)} }`
}

function bind(source: string, target: string, flags: string): string {
  return `mount { src: ${quote(source)} dst: ${quote(target)} is_bind: true ${flags} }`
}

/** Quotes a string for protobuf's text format. */
function quote(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n')}"`
}
