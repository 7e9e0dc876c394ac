import type { Duplex } from 'node:stream'
import { messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { guestCommand } from '../../src/guest/host/install.ts'
import { hostDirectories } from './files/host-base.ts'
import { checkMountTargets, toLayers } from './files/layers.ts'
import type { StagingMounts } from './files/staging.ts'
import type { EnvironmentPaths } from './host/layout.ts'
import type { EnvironmentRecord } from './host/record.ts'
import type { Installed } from './installed.ts'
import { type Controller, enterCgroups, OWN_PROCESSES } from './jail/cgroup.ts'
import { GUEST_INSIDE, type IdMapping, jailConfig } from './jail/config.ts'
import { dialGuest } from './jail/dial.ts'
import { killJail, launchJail, readLogTail, writeConfig } from './jail/jail.ts'
import { mayWriteLocal, showDirectory } from './jail/shown.ts'
import { assertWritable } from './jail/writable.ts'

/** A guest that starts on a cold, busy machine has been seen to need a second. */
const HELLO_WITHIN_MS = 30_000

export interface JailToRun {
  installed: Installed
  paths: EnvironmentPaths
  record: EnvironmentRecord
  /** Takes what processes inside connect to the proxy. */
  onProxy(socket: Duplex): void
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
  { paths, record, installed, onProxy }: JailToRun,
  { staging, ids, limited, procsFiles }: JailParts,
): Promise<GuestConnection> {
  const { upper, work, local, localWork } = toLayers(staging.disk)
  const hostPaths = record.isHostBase ? hostDirectories() : []
  checkMountTargets(upper, record.base, ['/proc', '/dev', ...hostPaths])
  const { processes, diskMb } = record.limits
  const config = jailConfig({
    ids,
    lower: staging.base,
    upper,
    work,
    guest: staging.guest,
    empty: staging.empty,
    devices: staging.devices,
    shown: hostPaths.flatMap(path => showDirectory(path)),
    ...(record.isHostBase && mayWriteLocal() && { local: { upper: local, work: localWork } }),
    ...(processes !== undefined && { processes }),
    ...(processes !== undefined && !limited.includes('pids') && { processesPerUser: processes + OWN_PROCESSES }),
    ...(diskMb !== undefined && !record.hasImage && { fileSizeMb: diskMb }),
    command: guestCommand(GUEST_INSIDE),
  })
  await writeConfig(paths, config)
  const pid = launchJail(paths, await installed.nsjail())
  return joinLaunched(pid, paths, procsFiles, onProxy)
}

/** Connects to the guest of a jail that was just launched, while its processes are moved into their cgroups. */
async function joinLaunched(
  pid: number,
  paths: EnvironmentPaths,
  procsFiles: readonly string[],
  onProxy: JailToRun['onProxy'],
): Promise<GuestConnection> {
  const [connection, entered] = await Promise.allSettled([
    dialGuest(paths, HELLO_WITHIN_MS, onProxy),
    enterCgroups(pid, procsFiles),
  ])
  if (connection.status === 'fulfilled' && entered.status === 'fulfilled') {
    try {
      await assertWritable(pid)
      return connection.value
    } catch (error) {
      connection.value.close()
      await killJail(paths)
      throw error
    }
  }
  if (connection.status === 'fulfilled') connection.value.close()
  await killJail(paths)
  const problem = connection.status === 'rejected' ? connection.reason : entered.status === 'rejected' && entered.reason
  throw new Error((await readLogTail(paths)) || messageOf(problem))
}
