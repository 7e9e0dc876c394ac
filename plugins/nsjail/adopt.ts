import { mkdir, readdir } from 'node:fs/promises'
import { messageOf } from '../../src/errors.ts'
import { isSafeId } from '../../src/guest/host/guest-backend.ts'
import { isCopied } from './backup/snapshot.ts'
import type { AvailableLimits } from './checks/available-limits.ts'
import type { BackendContext } from './context.ts'
import { closeStaging } from './files/staging.ts'
import { getEnvironmentPaths, sandboxesDirectory } from './host/layout.ts'
import { readRecord } from './host/record.ts'
import { findJail } from './jail/jail.ts'
import { keepJail } from './keep-jail.ts'
import { removeEnvironment } from './remove.ts'
import { eraseOldGuests, resumeRemovals, sweepLeftovers } from './sweep.ts'

/** Adopts the environments of a data directory. What takes long and is not needed yet goes on as `sweeping`, which never rejects. */
export async function adoptEnvironments(context: BackendContext): Promise<{ sweeping: Promise<void> }> {
  const { host } = context
  const sandboxes = sandboxesDirectory(host.dataDirectory)
  await mkdir(sandboxes, { recursive: true, mode: 0o700 })
  await sweepLeftovers(host)
  await resumeRemovals(context)
  const limits = await context.findLimits()
  const ids = (await readdir(sandboxes)).filter(isSafeId)
  await Promise.all(ids.map(id => adoptOrRemove(context, id, limits)))
  const sweeping = sweep(context).catch(error => host.log(`sweeping the data directory: ${messageOf(error)}`))
  return { sweeping }
}

/** Adopts a complete environment; deletes a half-created one. A failure is logged. */
async function adoptOrRemove(context: BackendContext, id: string, limits: AvailableLimits): Promise<void> {
  const { host, userIdRanges } = context
  const paths = getEnvironmentPaths(host.dataDirectory, id)
  try {
    const record = await readRecord(paths)
    if (!record) return void (await removeEnvironment(context, paths))
    if (host.isRoot) closeStaging(paths)
    await isCopied(paths)
    if (record.userIdRange !== undefined && !userIdRanges.claim(record.userIdRange)) {
      host.log(`${id} has the user ids of another sandbox`)
    }
    keepJail(context, { paths, record, limits })
  } catch (error) {
    host.log(`${id}: ${messageOf(error)}`)
  }
}

async function sweep({ host, installed, environments, removals }: BackendContext): Promise<void> {
  await Promise.all(removals.values())
  const ids = [...environments.keys()]
  const jails = await Promise.all(ids.map(id => findJail(getEnvironmentPaths(host.dataDirectory, id))))
  if (jails.every(jail => jail === undefined)) await eraseOldGuests(await installed.guest())
}
