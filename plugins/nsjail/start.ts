import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { ApiError, isNoSpace, messageOf, noSpace } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { guestCommand } from '../../src/guest/host/install.ts'
import { imageReleased, mountImage } from './files/disk.ts'
import { hostDirectories } from './files/host-base.ts'
import { mendImage } from './files/image-health.ts'
import { checkMountTargets, prepareLayers, renewWork, toLayers } from './files/layers.ts'
import { closeStaging, fillStaging, HOST_DEVICES, openStaging, type StagingMounts } from './files/staging.ts'
import type { EnvironmentPaths, Host } from './host/layout.ts'
import { attachMount, cloneMount } from './host/linux.ts'
import type { EnvironmentRecord } from './host/record.ts'
import { getFirstId, IDS_PER_JAIL } from './host/user-ids.ts'
import type { Installed } from './installed.ts'
import {
  areInCgroups,
  type Controller,
  enterCgroups,
  leaveFormerCgroups,
  makeCgroups,
  OWN_PROCESSES,
} from './jail/cgroup.ts'
import { GUEST_INSIDE, type IdMapping, jailConfig } from './jail/config.ts'
import { dialGuest } from './jail/dial.ts'
import { killJail, launchJail, readLogTail, writeConfig } from './jail/jail.ts'
import { openUserNamespace } from './jail/namespace.ts'
import { mayWriteLocal, showDirectory } from './jail/shown.ts'
import { assertWritable, ReadOnlyOverlay } from './jail/writable.ts'
import type { Reservation } from './reservation.ts'

/** A guest that starts on a cold, busy machine has been seen to need a second. */
const HELLO_WITHIN_MS = 30_000
/** One that runs already answers at once, unless the machine is in trouble. */
const ANSWERS_WITHIN_MS = 15_000

export interface StartedJail {
  connection: GuestConnection
  limited: Controller[]
}

export interface Start {
  host: Host
  installed: Installed
  paths: EnvironmentPaths
  record: EnvironmentRecord
  /** Takes what processes inside connect to the proxy. */
  onProxy(socket: Duplex): void
  /** For an environment's first start. Its descriptors are closed, however the start ends. */
  reservation?: Reservation | undefined
  /** Its disk is checked and its overlays get new room to work in, whatever they look like. */
  mend?: boolean
}

/**
 * Starts an environment's jail and waits until its guest answers. No other jail of it may run. When it rejects, no
 * process and no mount is left; the files and cgroups are the caller's.
 */
export async function startJail(start: Start): Promise<StartedJail> {
  const { host, paths, record, reservation } = start
  try {
    if (!existsSync(record.base)) {
      throw new ApiError('sandbox_unavailable', `The base of the sandbox is gone: it needs ${record.base} to start.`)
    }
    const state = await host.diskSpace?.look()
    if (state?.level === 'full') throw noSpace(state)
    return await attempt(start).catch(async error => {
      if (!(error instanceof ReadOnlyOverlay) || reservation) throw error
      if (host.isRoot) closeStaging(paths)
      host.log(`${paths.id}: ${error.message}; it is mended and started again`)
      return await attempt({ ...start, mend: true })
    })
  } catch (error) {
    await killJail(paths)
    if (error instanceof ApiError) throw error
    const code = isNoSpace(error) ? 'disk_full' : 'sandbox_unavailable'
    throw new ApiError(code, `The sandbox did not start: ${messageOf(error)}`)
  } finally {
    reservation?.userNamespace.close()
    reservation?.disk?.mount.close()
    if (host.isRoot) closeStaging(paths)
  }
}

const attempt = (start: Start) => (start.host.isRoot ? startAsRoot(start) : startAsUser(start))

/** Connects to the guest of a jail that runs. Rejects when it does not answer. */
export async function joinJail({ host, paths, record, onProxy }: Start, nsjail: number): Promise<StartedJail> {
  const connection = await dialGuest(paths, ANSWERS_WITHIN_MS, onProxy)
  try {
    await assertWritable(nsjail)
    if (!host.isRoot) return { connection, limited: [] }
    const { procsFiles, limited } = await makeCgroups(paths.cgroup, record.limits)
    if (!(await areInCgroups(nsjail, paths.cgroup, procsFiles))) {
      await enterCgroups(nsjail, procsFiles)
      await leaveFormerCgroups(nsjail, paths.id, procsFiles)
    }
    return { connection, limited }
  } catch (error) {
    connection.close()
    throw error
  }
}

async function startAsRoot(start: Start): Promise<StartedJail> {
  const { paths, record, installed, reservation } = start
  const { userIdRange } = record
  if (userIdRange === undefined)
    throw new ApiError('sandbox_unavailable', 'This sandbox belongs to a server that is not root.')
  if (record.hasImage && !reservation && !(await imageReleased(paths.image))) {
    throw new ApiError('sandbox_unavailable', 'The disk of the sandbox is still in use by its last run.')
  }
  const firstId = getFirstId(userIdRange)
  const ids: IdMapping = { firstUid: firstId, firstGid: firstId, count: IDS_PER_JAIL }
  const staging = openStaging(paths, firstId)
  const [guest, cgroups, userNamespace, disk] = await Promise.allSettled([
    installed.guest(),
    makeCgroups(paths.cgroup, record.limits),
    reservation?.userNamespace ?? openUserNamespace(firstId),
    mountDisk(start, staging.disk, ids),
  ])
  try {
    fillStaging(staging, record.base, settled(guest), settled(userNamespace))
  } finally {
    if (userNamespace.status === 'fulfilled') userNamespace.value.close()
  }
  settled(disk)
  const { procsFiles, limited } = settled(cgroups)
  return { connection: await enter(start, staging, ids, limited, procsFiles), limited }
}

/** Mounts the environment's disk, which its first start brings with it. */
async function mountDisk(
  { host, paths, record, reservation, mend = false }: Start,
  disk: string,
  ids: IdMapping,
): Promise<void> {
  if (!record.hasImage) {
    attachMount(cloneMount(paths.diskDirectory), disk)
    if (reservation) prepareLayers(disk, record.base, ids, record.isHostBase)
    else if (mend) await renewWork(disk, ids)
  } else if (reservation?.disk) attachMount(reservation.disk.mount, disk)
  else await mountUsedDisk(host, paths, disk, ids, mend)
}

/** Mounts a disk that jails have used, in order. */
async function mountUsedDisk(
  host: Host,
  { id, image }: EnvironmentPaths,
  disk: string,
  ids: IdMapping,
  mend: boolean,
): Promise<void> {
  const show = () => mountImage(image, disk, host.diskSpace)
  let isMended = await mendImage(image, { force: mend })
  await show().catch(async error => {
    if (isMended) throw error
    isMended = await mendImage(image, { force: true })
    await show()
  })
  if (!isMended) return
  await renewWork(disk, ids)
  host.log(`${id}: its disk was not left in order and is mended`)
}

async function startAsUser(start: Start): Promise<StartedJail> {
  const { host, paths, record, installed } = start
  if (record.userIdRange !== undefined) {
    throw new ApiError('sandbox_unavailable', 'This sandbox belongs to a server that is root.')
  }
  const empty = join(paths.directory, 'empty')
  mkdirSync(empty, { recursive: true, mode: 0o755 })
  const guest = await installed.guest()
  const staging: StagingMounts = { base: record.base, disk: paths.diskDirectory, guest, empty, devices: HOST_DEVICES }
  const ids: IdMapping = { firstUid: host.uid, firstGid: host.gid, count: 1 }
  if (!existsSync(toLayers(paths.diskDirectory).upper))
    prepareLayers(paths.diskDirectory, record.base, ids, record.isHostBase)
  else if (start.mend) await renewWork(paths.diskDirectory, ids)
  return { connection: await enter(start, staging, ids, [], []), limited: [] }
}

async function enter(
  { paths, record, installed, onProxy }: Start,
  staging: StagingMounts,
  ids: IdMapping,
  limited: Controller[],
  procsFiles: string[],
): Promise<GuestConnection> {
  const { upper, work, local, localWork } = toLayers(staging.disk)
  const ofHost = record.isHostBase ? hostDirectories() : []
  checkMountTargets(upper, record.base, ['/proc', '/dev', ...ofHost])
  const { processes, diskMb } = record.limits
  const config = jailConfig({
    ids,
    lower: staging.base,
    upper,
    work,
    guest: staging.guest,
    empty: staging.empty,
    devices: staging.devices,
    shown: ofHost.flatMap(path => showDirectory(path)),
    ...(record.isHostBase && mayWriteLocal() && { local: { upper: local, work: localWork } }),
    ...(processes !== undefined && { processes }),
    ...(processes !== undefined && !limited.includes('pids') && { processesPerUser: processes + OWN_PROCESSES }),
    ...(diskMb !== undefined && !record.hasImage && { fileSizeMb: diskMb }),
    command: guestCommand(GUEST_INSIDE),
  })
  await writeConfig(paths, config)
  return launch(paths, await installed.nsjail(), procsFiles, onProxy)
}

async function launch(
  paths: EnvironmentPaths,
  nsjail: string,
  procsFiles: string[],
  onProxy: Start['onProxy'],
): Promise<GuestConnection> {
  const pid = launchJail(paths, nsjail)
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

function settled<T>(result: PromiseSettledResult<T>): T {
  if (result.status === 'rejected') throw result.reason
  return result.value
}
