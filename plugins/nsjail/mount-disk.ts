import { existsSync } from 'node:fs'
import type { Disks } from './files/disk.ts'
import { mendImage } from './files/image-health.ts'
import { prepareLayers, renewWork, toLayers } from './files/layers.ts'
import type { EnvironmentPaths, Host } from './host/layout.ts'
import { attachMount, cloneMount } from './host/linux.ts'
import type { EnvironmentRecord } from './host/record.ts'
import type { IdMapping } from './jail/config.ts'
import type { Reservation } from './reservation.ts'

export interface DiskToMount {
  host: Host
  disks: Disks
  paths: EnvironmentPaths
  record: EnvironmentRecord
  /** For an environment's first start, which closes its descriptors, however it ends. */
  reservation?: Reservation | undefined
  /** The disk is checked and its overlays get new work directories, whatever state they are in. */
  mend?: boolean
}

/** Mounts the disk at `target`. The disk of a first start comes from its reservation. */
export async function mountDisk(disk: DiskToMount, target: string, ids: IdMapping): Promise<void> {
  const { paths, record, reservation, mend = false } = disk
  const { base, isHostBase, layers } = record
  const hasLayers = layers.length > 0
  if (!record.hasImage) {
    attachMount(cloneMount(paths.diskDirectory), target)
    if (reservation && !existsSync(toLayers(target).upper))
      prepareLayers({ disk: target, base, owner: ids, isHostBase, hasLayers })
    else if (mend) await renewWork(target, ids)
  } else if (reservation?.disk) attachMount(reservation.disk.mount, target)
  else await mountUsedDisk(disk, target, ids)
}

/** Mounts a disk that jails have used. Repairs it first when it was not left in order. */
async function mountUsedDisk(disk: DiskToMount, target: string, ids: IdMapping): Promise<void> {
  const { host, disks, paths, mend = false } = disk
  const mount = async () => attachMount(await disks.mount(paths.image), target)
  let isMended = await mendImage(paths.image, { force: mend })
  await mount().catch(async error => {
    if (isMended) throw error
    isMended = await mendImage(paths.image, { force: true })
    await mount()
  })
  if (!isMended) return
  await renewWork(target, ids)
  host.log(`${paths.id}: its disk was not left in order and is mended`)
}
