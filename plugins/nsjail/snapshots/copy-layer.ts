import type { NewDisk } from '../files/disk.ts'
import { prepareLayers } from '../files/layers.ts'
import type { EnvironmentPaths, Host } from '../host/layout.ts'
import type { EnvironmentRecord, Layer } from '../host/record.ts'
import { runProgram } from '../host/run-program.ts'
import { getFirstId } from '../host/user-ids.ts'
import { findLayerDirectory, openLayer } from './layer.ts'

/** `$1` is the disk of a snapshot, `$2` a new disk. The copy has whiteouts, and the marks by which a directory hides those below. */
const copyBoth = 'for layer in upper local; do cp -aT -- "$1/$layer" "$2/$layer" || exit 1; done'

export interface CopiedLayer {
  host: Host
  paths: EnvironmentPaths
  record: EnvironmentRecord
  layer: Layer
  /** Undefined when the disk is a directory. */
  disk: NewDisk | undefined
}

/** Copies what a snapshot has beside its own layers onto a new disk, which no jail has used. */
export async function copyLayer({ host, paths, record, layer, disk }: CopiedLayer): Promise<void> {
  const { dataDirectory, isRoot, uid, gid } = host
  const firstId = getFirstId(record.userIdRange ?? 0)
  const owner = isRoot ? { firstUid: firstId, firstGid: firstId } : { firstUid: uid, firstGid: gid }
  const { base, isHostBase } = record
  if (!disk) prepareLayers({ disk: paths.diskDirectory, base, isHostBase, hasLayers: true, owner })
  const to = disk ? `/proc/${process.pid}/fd/${disk.mount.number}` : paths.diskDirectory
  const copy = ['sh', '-c', copyBoth, 'sh']
  if (!isRoot) {
    // As root of a namespace an ordinary user can read all that belongs to it.
    await runProgram(['unshare', '-r', ...copy, findLayerDirectory(dataDirectory, layer), to], 0)
    return
  }
  const mount = openLayer(dataDirectory, layer, firstId)
  try {
    await runProgram([...copy, `/proc/${process.pid}/fd/${mount.number}`, to], 0)
  } finally {
    mount.close()
  }
}
