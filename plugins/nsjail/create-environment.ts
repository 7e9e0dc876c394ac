import { existsSync } from 'node:fs'
import { chmod, mkdir, rename, stat } from 'node:fs/promises'
import { syncPath } from '../../src/disk/lasting-files.ts'
import { ApiError, messageOf } from '../../src/errors.ts'
import type { KeptEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { hasRoom } from './checks/available-limits.ts'
import type { BackendContext } from './context.ts'
import { HOST_BASE, resolveBase } from './files/resolve-base.ts'
import { type EnvironmentPaths, getEnvironmentPaths, sandboxesDirectory } from './host/layout.ts'
import { draftRecord, type EnvironmentRecord } from './host/record.ts'
import { keepJail } from './keep-jail.ts'
import { removeEnvironment } from './remove.ts'
import type { Reservation, ReservationSpec } from './reservation.ts'
import { type StartedJail, startJail } from './start.ts'

/** Creates an environment and starts its jail. A rejected call leaves nothing behind. */
export async function createEnvironment(context: BackendContext, spec: EnvironmentSpec): Promise<KeptEnvironment> {
  const { host, reservations } = context
  const paths = getEnvironmentPaths(host.dataDirectory, spec.id)
  await host.diskSpace?.assertEnough()
  const limits = await context.findLimits()
  if (existsSync(paths.directory)) throw new ApiError('conflict', 'The sandbox exists already.')
  const { base: wanted = HOST_BASE } = spec
  const isHostBase = wanted === HOST_BASE
  const base = isHostBase ? await context.installed.hostBase() : await resolveBase(host, wanted)
  const imageMb = limits.noImages === undefined ? spec.limits.diskMb : undefined
  const reservationSpec: ReservationSpec = { base, baseInode: (await stat(base)).ino, isHostBase, imageMb }
  const reservation = host.isRoot ? await reservations.take(reservationSpec) : undefined
  const record: EnvironmentRecord = {
    ...(reservation && { userIdRange: reservation.userIdRange }),
    base,
    isHostBase,
    hasImage: reservation?.disk !== undefined,
    limits: { ...spec.limits },
  }
  try {
    const started = await startFirst(context, { paths, record, reservation })
    if (!existsSync(base)) throw new ApiError('invalid_request', `The base ${wanted} was removed meanwhile.`)
    return keepJail(context, { paths, record, limits, started })
  } catch (error) {
    reservation?.disk?.mount.close()
    await removeEnvironment(host, paths).then(
      () => reservation && reservations.drop(reservation),
      // Its user ids stay taken, because something may still run under them.
      problem => host.log(`${spec.id} could not be removed: ${messageOf(problem)}`),
    )
    throw error
  } finally {
    if (host.isRoot && hasRoom(host)) reservations.prepare(reservationSpec)
  }
}

interface NewEnvironment {
  paths: EnvironmentPaths
  record: EnvironmentRecord
  reservation: Reservation | undefined
}

/** Makes an environment's directory and starts its jail; resolves once a loss of power cannot undo the create. */
async function startFirst(context: BackendContext, environment: NewEnvironment): Promise<StartedJail> {
  const { host, installed, onProxy } = context
  const { paths, record, reservation } = environment
  await makeFiles(paths, reservation)
  const [commit, started, synced] = await Promise.allSettled([
    draftRecord(paths, record),
    startJail({ host, installed, paths, record, reservation, onProxy: onProxy(paths.id) }),
    record.hasImage ? syncPath(paths.image) : undefined,
  ])
  if (started.status === 'rejected') throw started.reason
  if (commit.status === 'rejected') throw commit.reason
  if (synced.status === 'rejected') throw synced.reason
  commit.value()
  await Promise.all([syncPath(paths.directory), syncPath(sandboxesDirectory(host.dataDirectory))])
  return started.value
}

async function makeFiles(paths: EnvironmentPaths, reservation: Reservation | undefined): Promise<void> {
  await mkdir(paths.directory, { mode: 0o700 })
  if (reservation?.disk) return rename(reservation.disk.image, paths.image)
  await mkdir(paths.diskDirectory, { mode: 0o711 })
  await chmod(paths.diskDirectory, 0o711)
}
