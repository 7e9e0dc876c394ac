import { existsSync } from 'node:fs'
import { mkdir, rename, stat } from 'node:fs/promises'
import { syncPath } from '../../../src/disk/lasting-files.ts'
import { ApiError, isNoSpace, messageOf, noSpace } from '../../../src/errors.ts'
import type { TakenSnapshot } from '../../../src/plugin-api/index.ts'
import { takeSnapshot } from '../backup/snapshot.ts'
import type { BackendContext } from '../context.ts'
import { mendImage } from '../files/image-health.ts'
import { erase } from '../host/erase.ts'
import {
  getEnvironmentPaths,
  getSnapshotPaths,
  type Host,
  newSnapshotDraft,
  snapshotsDirectory,
  toSnapshotPaths,
} from '../host/layout.ts'
import { draftRecord, readRecord } from '../host/record.ts'
import { runProgram } from '../host/run-program.ts'
import { canReflink } from './can-reflink.ts'
import { isCopied } from './find-snapshot.ts'

const BLOCK_BYTES = 512
const MB = 1024 * 1024

/** Takes a snapshot of an environment. It is there once all of it is on the disk; a rejected call leaves nothing. */
export async function keepSnapshot(
  { host, snapshotHolds }: Pick<BackendContext, 'host' | 'snapshotHolds'>,
  environmentId: string,
  snapshotId: string,
  signal?: AbortSignal,
): Promise<TakenSnapshot> {
  const { dataDirectory } = host
  const from = getEnvironmentPaths(dataDirectory, environmentId)
  const record = await readRecord(from)
  if (!record) throw new ApiError('sandbox_unavailable', 'The sandbox has no files any more.')
  // Its sandbox may be removed meanwhile.
  using _layers = await snapshotHolds.hold(record.layers.map(layer => layer.snapshotId))
  const parent = snapshotsDirectory(dataDirectory)
  await mkdir(parent, { recursive: true, mode: 0o700 })
  const sharesBlocks = await canReflink(parent)
  if (!sharesBlocks) await assertRoom(host, from)
  const draft = newSnapshotDraft(dataDirectory)
  try {
    signal?.throwIfAborted()
    const { frozenMs } = await takeSnapshot(dataDirectory, environmentId, draft, { asTree: true })
    signal?.throwIfAborted()
    const paths = toSnapshotPaths(snapshotId, draft)
    if (record.hasImage) await mendImage(paths.image)
    const commit = await draftRecord(paths, record)
    commit()
    if (record.hasImage) await syncPath(paths.image)
    else await runProgram(['sync', '-f', draft], 0)
    await syncPath(draft)
    const bytes = await bytesOf(record.hasImage ? paths.image : paths.diskDirectory)
    signal?.throwIfAborted()
    await rename(draft, getSnapshotPaths(dataDirectory, snapshotId).directory)
    await syncPath(parent)
    const forkMethod = isCopied(host, record.layers.length) ? 'copy' : 'layers'
    return { frozenMs, method: sharesBlocks ? 'reflink' : 'copy', forkMethod, bytes }
  } catch (error) {
    if (existsSync(draft)) await erase(draft)
    throw toTakeError(error, signal)
  }
}

/** A copy must not take what is kept free on the disk. */
async function assertRoom({ diskSpace }: Host, { image, diskDirectory }: { image: string; diskDirectory: string }) {
  const state = await diskSpace?.look()
  if (!state) return
  const neededMb = (await bytesOf(existsSync(image) ? image : diskDirectory)) / MB
  if (state.freeMb - neededMb < state.reserveMb) throw noSpace(state)
}

/** Returns how much a file or a directory takes on the disk. */
async function bytesOf(path: string): Promise<number> {
  const { blocks } = await stat(path)
  if (!path.endsWith('box')) return blocks * BLOCK_BYTES
  // du fails where it may not look, and still prints the sum.
  const output = await runProgram(['sh', '-c', 'du -skx -- "$1" 2>/dev/null; true', 'sh', path], 0)
  return (Number.parseInt(output, 10) || 0) * 1024
}

function toTakeError(error: unknown, signal: AbortSignal | undefined): unknown {
  if (error instanceof ApiError || signal?.aborted) return error
  const code = isNoSpace(error) ? 'disk_full' : 'sandbox_unavailable'
  return new ApiError(code, `The snapshot could not be taken: ${messageOf(error)}`)
}
