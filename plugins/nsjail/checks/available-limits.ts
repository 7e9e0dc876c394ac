import { messageOf } from '../../../src/errors.ts'
import { probeImages } from '../files/disk.ts'
import { type Ground, spareDirectory } from '../host/layout.ts'
import { type Controller, probeCgroups } from '../jail/cgroup.ts'

/** What can be limited exactly here, found by trying. */
export interface Capabilities {
  controllers: Controller[]
  /** Undefined when disks can be images, else why they cannot. */
  noImages?: string
}

export async function findCapabilities(ground: Ground): Promise<Capabilities> {
  if (!ground.root) return { controllers: [], noImages: 'only root can mount images' }
  const [controllers, noImages] = await Promise.all([
    probeCgroups(ground.dataDirectory),
    probeImages(spareDirectory(ground.dataDirectory)).then(() => undefined, messageOf),
  ])
  return { controllers, ...(noImages !== undefined && { noImages }) }
}
