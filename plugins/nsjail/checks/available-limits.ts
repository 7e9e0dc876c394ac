import { messageOf } from '../../../src/errors.ts'
import { probeImages } from '../files/disk-template.ts'
import { type Host, preparedDisksDirectory } from '../host/layout.ts'
import { type Controller, probeCgroups } from '../jail/cgroup.ts'

/** What can be limited exactly here, found by trying. */
export interface AvailableLimits {
  controllers: Controller[]
  /** Why disks cannot be images. Undefined when they can. */
  noImages?: string
}

/** Whether the disk's reserve is untouched. */
export const hasRoom = ({ diskSpace }: Host): boolean => (diskSpace?.state.level ?? 'enough') === 'enough'

/** Gives a function that tries once and remembers; a result from a full disk is not kept once there is room again. */
export function createLimitsFinder(host: Host): () => Promise<AvailableLimits> {
  let found: { limits: Promise<AvailableLimits>; hadRoom: boolean } | undefined
  return () => {
    if (!found || (!found.hadRoom && hasRoom(host))) found = { limits: findLimits(host), hadRoom: hasRoom(host) }
    return found.limits
  }
}

async function findLimits(host: Host): Promise<AvailableLimits> {
  if (!host.isRoot) return { controllers: [], noImages: 'only root can mount images' }
  const [controllers, noImages] = await Promise.all([
    probeCgroups(host.dataDirectory),
    probeImages(preparedDisksDirectory(host.dataDirectory)).then(() => undefined, messageOf),
  ])
  return { controllers, ...(noImages !== undefined && { noImages }) }
}
