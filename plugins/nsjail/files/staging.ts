import { chmodSync, existsSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Descriptor } from '../../../src/descriptor.ts'
import { type EnvironmentPaths, stagingRoot } from '../host/layout.ts'
import { attachMount, cloneMount, detachMount, makeDevice, mountTmpfs } from '../host/linux.ts'
import { devices } from '../jail/config.ts'

/**
 * The mounts that a jail of root is made from, below one tmpfs that its unprivileged ids can pass through: data
 * directories are closed to them. It exists while the jail starts; the jail keeps what it has mounted from there.
 */
export interface StagingMounts {
  base: string
  /** The disks of snapshots, in the order of the record. */
  layers: readonly string[]
  disk: string
  guest: string
  empty: string
  devices: string
  bootId: string
}

const SIZE_KB = 64

/** Only root can make nodes: the jails of an ordinary user have the host's. */
export const HOST_DEVICES = '/dev'

/** Mounts an empty staging directory. `firstId` is the jail's root: only it and the host's root can look in. */
export function openStaging(
  paths: Pick<EnvironmentPaths, 'staging'>,
  firstId: number,
  layerCount: number,
): StagingMounts {
  if (mkdirSync(stagingRoot, { recursive: true })) chmodSync(stagingRoot, 0o711)
  closeStaging(paths)
  mkdirSync(paths.staging, { mode: 0o700 })
  try {
    mountTmpfs(paths.staging, SIZE_KB, firstId)
  } catch (error) {
    rmdirSync(paths.staging)
    throw error
  }
  const below = (name: string) => join(paths.staging, name)
  const directories = { base: below('base'), disk: below('disk'), guest: below('guest'), empty: below('empty') }
  // The paths must be short, so that many of them fit into the options of one mount.
  const layers = Array.from({ length: layerCount }, (_, index) => below(`${index}`))
  for (const path of [...Object.values(directories), ...layers]) mkdirSync(path, { mode: 0o755 })
  const bootId = writeBootId(below('boot_id'))
  return { ...directories, layers, bootId, devices: makeDevices(below('dev')) ?? HOST_DEVICES }
}

/** Writes what one start of a jail has as the id of its boot. Returns the path. */
export function writeBootId(path: string): string {
  rmSync(path, { force: true })
  writeFileSync(path, `${crypto.randomUUID()}\n`, { mode: 0o444 })
  return path
}

/** Makes device nodes for one jail, so that it shares no lock and no watch with the host. Undefined when root may not make nodes. */
function makeDevices(directory: string): string | undefined {
  mkdirSync(directory, { mode: 0o755 })
  try {
    for (const { name, major, minor } of devices) makeDevice(join(directory, name), major, minor)
    return directory
  } catch {
    return undefined
  }
}

/** Mounts the lower layer with its owners shifted into the jail's range, and the guest's files read-only. */
export function fillStaging(staging: StagingMounts, base: string, guest: string, userNamespace: Descriptor): void {
  attachMount(cloneMount(base, { userNamespace }), staging.base)
  attachMount(cloneMount(guest, { readOnly: true }), staging.guest)
}

/** Removes a staging directory with its mounts, also one that a dead server has left. */
export function closeStaging(paths: Pick<EnvironmentPaths, 'staging'>): void {
  if (!existsSync(paths.staging)) return
  while (detachMount(paths.staging)) {
    // Another mount may be below.
  }
  rmdirSync(paths.staging)
}
