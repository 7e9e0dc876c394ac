import { existsSync } from 'node:fs'
import { mkdir, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { isSafeId } from '../../../src/guest/host/guest-backend.ts'
import type { BackendContext } from '../context.ts'
import {
  getEnvironmentPaths,
  getSnapshotPaths,
  newTrashName,
  sandboxesDirectory,
  snapshotsDirectory,
  trashDirectory,
} from '../host/layout.ts'
import { readRecord } from '../host/record.ts'
import { eraseFiles } from '../remove.ts'

/** Removes a snapshot. Returns false while something is made of it: its files stay then. */
export async function removeSnapshot(
  { host, snapshotHolds }: Pick<BackendContext, 'host' | 'snapshotHolds'>,
  snapshotId: string,
): Promise<boolean> {
  const { dataDirectory } = host
  const { directory } = getSnapshotPaths(dataDirectory, snapshotId)
  const trash = join(trashDirectory(dataDirectory), newTrashName(snapshotId))
  const isFree = await snapshotHolds.unlessHeld(snapshotId, async () => {
    if (await isLayer(dataDirectory, snapshotId)) return false
    if (!existsSync(directory)) return true
    await mkdir(trashDirectory(dataDirectory), { recursive: true, mode: 0o700 })
    await rename(directory, trash)
    return true
  })
  if (existsSync(trash)) await eraseFiles(trash)
  return isFree ?? false
}

/** Whether the files of a snapshot lie below those of an environment or of another snapshot. */
async function isLayer(dataDirectory: string, snapshotId: string): Promise<boolean> {
  const idsIn = async (path: string) => (await readdir(path).catch(() => [])).filter(isSafeId)
  const records = [
    ...(await idsIn(sandboxesDirectory(dataDirectory))).map(id => getEnvironmentPaths(dataDirectory, id)),
    ...(await idsIn(snapshotsDirectory(dataDirectory))).map(id => getSnapshotPaths(dataDirectory, id)),
  ]
  for (const paths of records) {
    const record = await readRecord(paths)
    if (record?.layers.some(layer => layer.snapshotId === snapshotId)) return true
  }
  return false
}
