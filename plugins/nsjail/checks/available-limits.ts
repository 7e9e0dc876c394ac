import { messageOf } from '../../../src/errors.ts'
import { probeImages } from '../files/disk.ts'
import { type Host, preparedDisksDirectory } from '../host/layout.ts'
import { type Controller, probeCgroups } from '../jail/cgroup.ts'

/** What can be limited exactly here, found by trying. */
export interface AvailableLimits {
  controllers: Controller[]
  /** Undefined when disks can be images, else why they cannot. */
  noImages?: string
}

export async function findAvailableLimits(host: Host): Promise<AvailableLimits> {
  if (!host.isRoot) return { controllers: [], noImages: 'only root can mount images' }
  const [controllers, noImages] = await Promise.all([
    probeCgroups(host.dataDirectory),
    probeImages(preparedDisksDirectory(host.dataDirectory)).then(() => undefined, messageOf),
  ])
  return { controllers, ...(noImages !== undefined && { noImages }) }
}
