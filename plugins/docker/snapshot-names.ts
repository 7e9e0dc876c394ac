import { join } from 'node:path'
import { isSafeId } from '../../src/guest/host/guest-backend.ts'

/** The image of a snapshot that a restore has brought, which the engine gets with its first use. */
export const IMAGE_FILE = 'image.tar'

/**
 * The name that the image of a snapshot has on the engine. It has the id of the data directory in it, since a restored data directory has
 * the same snapshots as the first one, maybe on the same engine, and each removes its own.
 */
export const tagOf = (dataId: string, snapshotId: string) => ({
  repo: 'threadbox-snapshot',
  tag: `${snapshotId}.${dataId}`,
})

export function imageOf(dataId: string, snapshotId: string): string {
  const { repo, tag } = tagOf(dataId, snapshotId)
  return `${repo}:${tag}`
}

/** Returns the id of the snapshot of this data directory that an image has the name of. */
export function snapshotOf(dataId: string, image: string): string | undefined {
  const [, id] = /^threadbox-snapshot:([A-Za-z0-9_-]+)\.[0-9a-f]{32}$/.exec(image) ?? []
  return id !== undefined && image === imageOf(dataId, id) ? id : undefined
}

export const snapshotsDirectory = (dataDirectory: string) => join(dataDirectory, 'docker-snapshots')

/** Where a snapshot has what its image does not have. */
export function snapshotDirectory(dataDirectory: string, snapshotId: string): string {
  if (!isSafeId(snapshotId)) throw new Error('the id of the snapshot is not safe as a file name')
  return join(snapshotsDirectory(dataDirectory), snapshotId)
}
