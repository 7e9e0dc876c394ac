import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ApiError, isNoSpace, messageOf, noSpace } from '../../src/errors.ts'
import { untilThawed } from './backup/snapshot.ts'
import { prepareLayers, renewWork, toLayers } from './files/layers.ts'
import {
  closeStaging,
  fillStaging,
  HOST_DEVICES,
  openStaging,
  type StagingMounts,
  writeBootId,
} from './files/staging.ts'
import { getFirstId, IDS_PER_JAIL } from './host/user-ids.ts'
import { areInCgroups, type Controller, enterCgroups, leaveFormerCgroups, makeCgroups } from './jail/cgroup.ts'
import type { IdMapping } from './jail/config.ts'
import { type DialledGuest, dialGuest } from './jail/dial.ts'
import { killJail } from './jail/jail.ts'
import { openUserNamespace } from './jail/namespace.ts'
import { assertWritable, ReadOnlyOverlay } from './jail/writable.ts'
import { type DiskToMount, mountDisk } from './mount-disk.ts'
import { type JailToRun, runJail } from './run-jail.ts'
import { findLayerDirectory, mountLayer } from './snapshots/layer.ts'

/** A guest that runs already answers at once, unless the machine is overloaded. */
const ANSWERS_WITHIN_MS = 15_000

export interface StartedJail extends DialledGuest {
  limited: Controller[]
}

export type JailStart = JailToRun & DiskToMount

/**
 * Starts an environment's jail, which must not run yet, and waits until its guest answers. When it rejects, no process and no
 * mount is left; the caller removes files and cgroups.
 */
export async function startJail(start: JailStart): Promise<StartedJail> {
  const { host, paths, record, reservation } = start
  try {
    if (!existsSync(record.base)) {
      throw new ApiError('sandbox_unavailable', `The base of the sandbox is gone: it needs ${record.base} to start.`)
    }
    const state = await host.diskSpace?.look()
    if (state?.level === 'full') throw noSpace(state)
    return await startOnce(start).catch(async error => {
      if (!(error instanceof ReadOnlyOverlay) || reservation) throw error
      if (host.isRoot) closeStaging(paths)
      host.log(`${paths.id}: ${error.message}; it is mended and started again`)
      return await startOnce({ ...start, mend: true })
    })
  } catch (error) {
    await killJail(paths)
    if (error instanceof ApiError) throw error
    const code = isNoSpace(error) ? 'disk_full' : 'sandbox_unavailable'
    throw new ApiError(code, `The sandbox did not start: ${messageOf(error)}`)
  } finally {
    reservation?.disk?.mount.close()
    if (host.isRoot) closeStaging(paths)
  }
}

const startOnce = (start: JailStart) => (start.host.isRoot ? startAsRoot(start) : startAsUser(start))

/** Connects to the guest of a jail that runs. Rejects when it does not answer. */
export async function joinJail({ host, paths, record, outlets }: JailStart, nsjail: number): Promise<StartedJail> {
  const dialled = await dialGuest({ host, paths, nsjail, outlets }, ANSWERS_WITHIN_MS)
  try {
    await assertWritable(nsjail)
    if (!host.isRoot) return { ...dialled, limited: [] }
    const { procsFiles, limited } = await makeCgroups(paths.cgroup, record.limits)
    if (!(await areInCgroups(nsjail, paths.cgroup, procsFiles))) {
      await enterCgroups(nsjail, procsFiles)
      await leaveFormerCgroups(nsjail, paths.id, procsFiles)
    }
    return { ...dialled, limited }
  } catch (error) {
    dialled.connection.close()
    throw error
  }
}

async function startAsRoot(start: JailStart): Promise<StartedJail> {
  const { host, disks, paths, record, installed, reservation } = start
  const { userIdRange } = record
  if (userIdRange === undefined)
    throw new ApiError('sandbox_unavailable', 'This sandbox belongs to a server that is not root.')
  if (!reservation) await untilThawed(paths)
  if (record.hasImage && !reservation && !(await disks.released(paths.image))) {
    throw new ApiError('sandbox_unavailable', 'The disk of the sandbox is still in use by its last run.')
  }
  const firstId = getFirstId(userIdRange)
  const ids: IdMapping = { firstUid: firstId, firstGid: firstId, count: IDS_PER_JAIL }
  const staging = openStaging(paths, firstId, record.layers.length)
  const [guest, cgroups, disk] = await Promise.allSettled([
    installed.guest(),
    makeCgroups(paths.cgroup, record.limits),
    mountDisk(start, staging.disk, ids),
  ])
  const userNamespace = openUserNamespace(firstId)
  try {
    fillStaging(staging, record.base, unwrap(guest), userNamespace)
  } finally {
    userNamespace.close()
  }
  for (const [index, layer] of record.layers.entries()) {
    mountLayer(host.dataDirectory, layer, { target: staging.layers[index] ?? '', firstId })
  }
  unwrap(disk)
  const { procsFiles, limited } = unwrap(cgroups)
  return { ...(await runJail(start, { staging, ids, limited, procsFiles })), limited }
}

async function startAsUser(start: JailStart): Promise<StartedJail> {
  const { host, paths, record, installed } = start
  if (record.userIdRange !== undefined) {
    throw new ApiError('sandbox_unavailable', 'This sandbox belongs to a server that is root.')
  }
  const empty = join(paths.directory, 'empty')
  mkdirSync(empty, { recursive: true, mode: 0o755 })
  const guest = await installed.guest()
  const { base, isHostBase } = record
  const disk = paths.diskDirectory
  const layers = record.layers.map(layer => findLayerDirectory(host.dataDirectory, layer))
  const bootId = writeBootId(join(paths.directory, 'boot_id'))
  const staging: StagingMounts = { base, layers, disk, guest, empty, bootId, devices: HOST_DEVICES }
  const ids: IdMapping = { firstUid: host.uid, firstGid: host.gid, count: 1 }
  if (!existsSync(toLayers(disk).upper))
    prepareLayers({ disk, base, owner: ids, isHostBase, hasLayers: layers.length > 0 })
  else if (start.mend) await renewWork(disk, ids)
  return { ...(await runJail(start, { staging, ids, limited: [], procsFiles: [] })), limited: [] }
}

function unwrap<T>(result: PromiseSettledResult<T>): T {
  if (result.status === 'rejected') throw result.reason
  return result.value
}
