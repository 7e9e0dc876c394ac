import { messageOf } from '../../src/errors.ts'
import { guestCommand } from '../../src/guest/host/install.ts'
import type { Outlets } from '../../src/guest/host/outlets.ts'
import { hostDirectories } from './files/host-base.ts'
import { checkMountTargets, toLayers } from './files/layers.ts'
import type { StagingMounts } from './files/staging.ts'
import type { EnvironmentPaths, Host } from './host/layout.ts'
import type { EnvironmentRecord } from './host/record.ts'
import type { Installed } from './installed.ts'
import { type Controller, enterCgroups, OWN_PROCESSES } from './jail/cgroup.ts'
import { GUEST_INSIDE, type IdMapping, jailConfig } from './jail/config.ts'
import { type DialledGuest, dialGuest, type GuestToDial } from './jail/dial.ts'
import { killJail, launchJail, readLogTail, writeConfig } from './jail/jail.ts'
import { mayWriteLocal, showDirectory } from './jail/shown.ts'
import { assertWritable } from './jail/writable.ts'

/** A guest that starts on a cold, busy machine has been seen to need a second. */
const HELLO_WITHIN_MS = 30_000

export interface JailToRun {
  host: Host
  installed: Installed
  paths: EnvironmentPaths
  record: EnvironmentRecord
  outlets: Outlets
}

export interface JailParts {
  staging: StagingMounts
  ids: IdMapping
  limited: readonly Controller[]
  /** Files of its cgroups that take pids. */
  procsFiles: readonly string[]
}

/** Writes a jail's configuration, starts it and waits until its guest answers. When it rejects, no process is left. */
export async function runJail(
  { host, paths, record, installed, outlets }: JailToRun,
  { staging, ids, limited, procsFiles }: JailParts,
): Promise<DialledGuest> {
  const { upper, work, local, localWork } = toLayers(staging.disk)
  const hostPaths = record.isHostBase ? hostDirectories() : []
  const below = staging.layers.map(toLayers)
  const lowers = [...below.map(layer => layer.upper), staging.base]
  // The base is checked at its own path, because its clone has the jail's ids.
  checkMountTargets([upper, ...lowers.slice(0, -1), record.base], ['/proc', '/dev', ...hostPaths])
  const { processes, diskMb } = record.limits
  const config = jailConfig({
    ids,
    lowers,
    upper,
    work,
    guest: staging.guest,
    bootId: staging.bootId,
    empty: staging.empty,
    devices: staging.devices,
    shown: hostPaths.flatMap(path => showDirectory(path)),
    ...(record.isHostBase &&
      mayWriteLocal() && { local: { lowers: below.map(layer => layer.local), upper: local, work: localWork } }),
    ...(processes !== undefined && { processes }),
    ...(processes !== undefined && !limited.includes('pids') && { processesPerUser: processes + OWN_PROCESSES }),
    ...(diskMb !== undefined && !record.hasImage && { fileSizeMb: diskMb }),
    serverListens: host.isRoot,
    command: guestCommand(GUEST_INSIDE),
  })
  await writeConfig(paths, config)
  const pid = launchJail(paths, await installed.nsjail())
  return joinLaunched({ host, paths, nsjail: pid, outlets }, procsFiles)
}

/** Connects to the guest of a jail that was just launched, while its processes are moved into their cgroups. */
async function joinLaunched(guest: GuestToDial, procsFiles: readonly string[]): Promise<DialledGuest> {
  const { paths, nsjail } = guest
  const [connection, entered] = await Promise.allSettled([
    dialGuest(guest, HELLO_WITHIN_MS),
    enterCgroups(nsjail, procsFiles),
  ])
  if (connection.status === 'fulfilled' && entered.status === 'fulfilled') {
    try {
      await assertWritable(nsjail)
      return connection.value
    } catch (error) {
      connection.value.connection.close()
      await killJail(paths)
      throw error
    }
  }
  if (connection.status === 'fulfilled') connection.value.connection.close()
  await killJail(paths)
  const problem = connection.status === 'rejected' ? connection.reason : entered.status === 'rejected' && entered.reason
  throw new Error((await readLogTail(paths)) || messageOf(problem))
}
