import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '../../src/errors.ts'
import type { Snapshots } from '../../src/plugin-api/index.ts'
import type { Control } from './control.ts'

/** Maps our ids of snapshots to E2B's names. */
const pathOf = (dataDirectory: string, snapshotId: string): string => {
  if (!/^[A-Za-z0-9_-]{1,80}$/.test(snapshotId)) throw new Error('the id of the snapshot is not safe as a file name')
  return join(dataDirectory, 'e2b-snapshots', snapshotId)
}

/** A name at E2B. A snapshot whose answer was lost is found by it. */
const nameOf = (snapshotId: string) => snapshotId.replace(/^snap_/, 'threadbox-')

/** Returns E2B's name of a snapshot. Throws not_found. */
export async function findE2bSnapshot(dataDirectory: string, snapshotId: string): Promise<string> {
  return await readFile(pathOf(dataDirectory, snapshotId), 'utf8').catch(() => {
    throw new ApiError('not_found', 'The snapshot has no files any more.')
  })
}

/** Makes the snapshots that E2B takes and keeps. `prepare` throws when E2B cannot be used. */
export const createE2bSnapshots = (
  dataDirectory: string,
  control: Pick<Control, 'find' | 'snapshot' | 'removeSnapshot'>,
  prepare: () => void,
): Snapshots => ({
  async take(environmentId, snapshotId, signal) {
    prepare()
    signal?.throwIfAborted()
    const path = pathOf(dataDirectory, snapshotId)
    const sandboxId = await control.find(environmentId)
    if (sandboxId === undefined) throw new ApiError('sandbox_unavailable', 'The sandbox is gone at E2B.')
    const begun = performance.now()
    try {
      const taken = await control.snapshot(sandboxId, nameOf(snapshotId))
      // E2B pauses the sandbox, and does not say for how long.
      const frozenMs = Math.ceil(performance.now() - begun)
      signal?.throwIfAborted()
      await mkdir(join(dataDirectory, 'e2b-snapshots'), { recursive: true, mode: 0o700 })
      await writeFile(path, taken, { mode: 0o600, flush: true })
      return { frozenMs, method: 'copy', forkMethod: 'layers' }
    } catch (error) {
      await control.removeSnapshot(nameOf(snapshotId)).catch(() => {})
      throw error
    }
  },
  async remove(snapshotId) {
    const path = pathOf(dataDirectory, snapshotId)
    const taken = await readFile(path, 'utf8').catch(() => undefined)
    prepare()
    await control.removeSnapshot(taken ?? nameOf(snapshotId))
    await rm(path, { force: true })
    return true
  },
})
