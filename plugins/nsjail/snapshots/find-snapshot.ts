import { ApiError } from '../../../src/errors.ts'
import { getSnapshotPaths, type Host, snapshotsDirectory } from '../host/layout.ts'
import { type EnvironmentRecord, type Layer, readRecord } from '../host/record.ts'

/** What an environment made from a snapshot starts from. */
export interface SnapshotOrigin {
  base: string
  isHostBase: boolean
  layers: readonly Layer[]
  /** The layer that is copied onto the environment's disk, because it has the most layers that are allowed. */
  copied?: Layer
}

/** The options of one mount, which name all layers, may be this long: at most a page. */
const OPTION_BYTES = 3800

/** The greatest number of layers of an environment. For an ordinary user, the mount names layers by their paths in the data directory. */
function findMost({ isRoot, dataDirectory, maxLayers }: Host): number {
  if (isRoot) return maxLayers
  const bytes = Buffer.byteLength(`${snapshotsDirectory(dataDirectory)}/snap_${crypto.randomUUID()}/box/upper:`)
  // The base, the upper directory and the work directory are three more paths.
  return Math.max(1, Math.min(maxLayers, Math.floor(OPTION_BYTES / bytes) - 3))
}

/** True when a snapshot with this many layers is copied for each environment that is made of it. */
export const isCopied = (host: Host, layerCount: number): boolean => layerCount + 1 > findMost(host)

/** Throws not_found when there is no such snapshot. */
export async function findSnapshot(host: Host, snapshotId: string): Promise<SnapshotOrigin> {
  const record = await readRecord(getSnapshotPaths(host.dataDirectory, snapshotId))
  if (!record) throw new ApiError('not_found', 'The snapshot has no files any more.')
  const { base, isHostBase, layers } = record
  const own = toLayer(snapshotId, record)
  return isCopied(host, layers.length)
    ? { base, isHostBase, layers, copied: own }
    : { base, isHostBase, layers: [own, ...layers] }
}

const toLayer = (snapshotId: string, { userIdRange }: EnvironmentRecord): Layer => ({
  snapshotId,
  ...(userIdRange !== undefined && { userIdRange }),
})
