import { existsSync } from 'node:fs'
import type { Descriptor } from '../../../src/descriptor.ts'
import { ApiError } from '../../../src/errors.ts'
import { getSnapshotPaths } from '../host/layout.ts'
import { attachMount, cloneMount, mountExt4, restrictMount } from '../host/linux.ts'
import { attachLoop, listLoopDevices, readImageOf } from '../host/loop-device.ts'
import type { Layer } from '../host/record.ts'
import { getFirstId } from '../host/user-ids.ts'
import { openUserNamespace } from '../jail/namespace.ts'

const ATTEMPTS = 5

/** Mounts the disk of a snapshot at `target`, as `openLayer` does. */
export function mountLayer(
  dataDirectory: string,
  layer: Layer,
  { target, firstId }: { target: string; firstId: number },
): void {
  attachMount(openLayer(dataDirectory, layer, firstId), target)
}

/**
 * Mounts the disk of a snapshot, read-only, with its files belonging to the ids of the jail whose root is `firstId`. All jails on it
 * share one loop device, and so what is in memory of it. The mount is not in the tree. For root.
 */
export function openLayer(dataDirectory: string, layer: Layer, firstId: number): Descriptor {
  const { snapshotId, userIdRange } = layer
  if (userIdRange === undefined) throw lost('belongs to a server that is not root')
  const { image, diskDirectory } = getSnapshotPaths(dataDirectory, snapshotId)
  if (!existsSync(image) && !existsSync(diskDirectory)) throw lost('is gone')
  const userNamespace = openUserNamespace(firstId, getFirstId(userIdRange))
  try {
    return existsSync(image)
      ? restrictMount(mountImage(image), image, { userNamespace })
      : cloneMount(diskDirectory, { readOnly: true, userNamespace })
  } finally {
    userNamespace.close()
  }
}

/** The disk of a snapshot for the jails of an ordinary user. */
export function findLayerDirectory(dataDirectory: string, { snapshotId, userIdRange }: Layer): string {
  if (userIdRange !== undefined) throw lost('belongs to a server that is root')
  const { diskDirectory } = getSnapshotPaths(dataDirectory, snapshotId)
  if (!existsSync(diskDirectory)) throw lost('is gone')
  return diskDirectory
}

const lost = (what: string) => new ApiError('sandbox_unavailable', `The snapshot that the sandbox is made of ${what}.`)

function mountImage(image: string) {
  for (let attempt = 1; ; attempt++) {
    const found = attempt > ATTEMPTS ? undefined : listLoopDevices().find(name => readImageOf(name) === image)
    if (found === undefined) return mountNew(image)
    try {
      const mount = mountExt4(`/dev/${found}`, { readOnly: true })
      // While it is mounted here, the device keeps its image.
      if (readImageOf(found) === image) return mount
      mount.close()
    } catch (error) {
      if (readImageOf(found) === image) throw error
    }
  }
}

function mountNew(image: string) {
  const { name, descriptor } = attachLoop(image, { readOnly: true })
  try {
    return mountExt4(`/dev/${name}`, { readOnly: true })
  } finally {
    descriptor.close()
  }
}
