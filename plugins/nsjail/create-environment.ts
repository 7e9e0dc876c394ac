import { existsSync } from 'node:fs'
import { chmod, mkdir, rename } from 'node:fs/promises'
import { syncPath } from '../../src/disk/lasting-files.ts'
import { ApiError, messageOf } from '../../src/errors.ts'
import type { KeptEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { hasRoom } from './checks/available-limits.ts'
import type { BackendContext } from './context.ts'
import type { Disks } from './files/disk.ts'
import { HOST_BASE } from './files/resolve-base.ts'
import { type FoundBase, findBase } from './find-base.ts'
import { type EnvironmentPaths, getEnvironmentPaths, sandboxesDirectory } from './host/layout.ts'
import { draftRecord, type EnvironmentRecord, type Layer } from './host/record.ts'
import { markSpare } from './host/spare-mark.ts'
import { keepJail } from './keep-jail.ts'
import { removeEnvironment } from './remove.ts'
import type { Reservation, ReservationSpec } from './reservation.ts'
import { copyLayer } from './snapshots/copy-layer.ts'
import { findSnapshot, type SnapshotOrigin } from './snapshots/find-snapshot.ts'
import { type StartedJail, startJail } from './start.ts'

/** Creates an environment and starts its jail. A rejected call leaves nothing behind. */
export async function createEnvironment(context: BackendContext, spec: EnvironmentSpec): Promise<KeptEnvironment> {
  const { host, removals, reservations } = context
  const paths = getEnvironmentPaths(host.dataDirectory, spec.id)
  await removals.get(spec.id)
  await host.diskSpace?.assertEnough()
  const limits = await context.findLimits()
  if (existsSync(paths.directory)) throw new ApiError('conflict', 'The sandbox exists already.')
  spec.onProgress?.({ message: 'preparing the base' })
  using _snapshot = await context.snapshotHolds.hold(spec.snapshot === undefined ? [] : [spec.snapshot])
  const { base, isHostBase, layers, copied, found } = await findOrigin(context, spec)
  const imageMb = limits.noImages === undefined ? spec.limits.diskMb : undefined
  const hasLayers = layers.length > 0 || copied !== undefined
  const reservationSpec: ReservationSpec = { base, baseInode: found?.inode ?? 0, isHostBase, hasLayers, imageMb }
  const reservation = host.isRoot ? await reservations.take(reservationSpec) : undefined
  const record: EnvironmentRecord = {
    ...(reservation && { userIdRange: reservation.userIdRange }),
    base,
    isHostBase,
    hasImage: reservation?.disk !== undefined,
    limits: { ...spec.limits },
    layers,
  }
  try {
    spec.onProgress?.({ message: 'starting the jail' })
    const started = await startFirst(context, { paths, record, reservation, copied, isSpare: spec.isSpare === true })
    if (!existsSync(base)) throw new ApiError('invalid_request', `The base ${spec.base ?? base} was removed meanwhile.`)
    const environment = keepJail(context, { paths, record, limits, started })
    if (spec.isSpare && found) context.spareBases.set(environment, found)
    return environment
  } catch (error) {
    reservation?.disk?.mount.close()
    await removeEnvironment(context, paths).then(
      async ({ rest }) => {
        await rest
        if (reservation) await reservations.drop(reservation)
      },
      // Its user ids stay taken, because something may still run under them.
      problem => host.log(`${spec.id} could not be removed: ${messageOf(problem)}`),
    )
    throw error
  } finally {
    // The next create is more likely to be one without a snapshot.
    if (host.isRoot && !hasLayers && hasRoom(host)) reservations.prepare(reservationSpec)
  }
}

interface Origin extends SnapshotOrigin {
  /** The base as it was found. Undefined when the environment is made from a snapshot. */
  found?: FoundBase
}

async function findOrigin(context: BackendContext, { base, snapshot }: EnvironmentSpec): Promise<Origin> {
  if (snapshot !== undefined) return await findSnapshot(context.host, snapshot)
  const found = await findBase(context, base)
  return { base: found.path, isHostBase: base === undefined || base === HOST_BASE, layers: [], found }
}

interface NewEnvironment {
  paths: EnvironmentPaths
  record: EnvironmentRecord
  reservation: Reservation | undefined
  copied: Layer | undefined
  isSpare: boolean
}

/** Makes an environment's directory and starts its jail; resolves once a loss of power cannot undo the create. */
async function startFirst(context: BackendContext, environment: NewEnvironment): Promise<StartedJail> {
  const { host, installed, disks, outletsOf } = context
  const { paths, record, reservation, copied, isSpare } = environment
  await makeFiles(disks, paths, reservation)
  if (copied) await copyLayer({ host, paths, record, layer: copied, disk: reservation?.disk })
  if (isSpare) await markSpare(paths)
  const [commit, started, synced] = await Promise.allSettled([
    draftRecord(paths, record),
    startJail({ host, installed, disks, paths, record, reservation, outlets: outletsOf(paths.id) }),
    record.hasImage ? syncPath(paths.image) : undefined,
  ])
  if (started.status === 'rejected') throw started.reason
  if (commit.status === 'rejected') throw commit.reason
  if (synced.status === 'rejected') throw synced.reason
  commit.value()
  await Promise.all([syncPath(paths.directory), syncPath(sandboxesDirectory(host.dataDirectory))])
  return started.value
}

async function makeFiles(disks: Disks, paths: EnvironmentPaths, reservation: Reservation | undefined): Promise<void> {
  await mkdir(paths.directory, { mode: 0o700 })
  if (reservation?.disk) {
    await rename(reservation.disk.image, paths.image)
    return disks.moved(reservation.disk.image, paths.image)
  }
  await mkdir(paths.diskDirectory, { mode: 0o711 })
  await chmod(paths.diskDirectory, 0o711)
}
