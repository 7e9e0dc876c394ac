import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { ApiError, isNoSpace, messageOf, noSpace } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { guestCommand } from '../../src/guest/host/install.ts'
import { imageReleased, mountImage } from './files/disk.ts'
import { hostDirectories } from './files/host-base.ts'
import { mendImage } from './files/image-health.ts'
import { checkMountTargets, layersOf, prepareLayers, renewWork } from './files/layers.ts'
import { closeStage, fillStage, HOST_DEVICES, openStage, type Stage } from './files/staging.ts'
import type { Ground, Place } from './host/layout.ts'
import { attachMount, cloneMount } from './host/linux.ts'
import type { Meta } from './host/record.ts'
import { firstIdOf, IDS_PER_JAIL } from './host/user-ids.ts'
import type { Supplies } from './installed.ts'
import {
  areInside,
  type Controller,
  enterCgroups,
  leaveFormerCgroups,
  makeCgroups,
  OWN_PROCESSES,
} from './jail/cgroup.ts'
import { GUEST_INSIDE, type IdRange, jailConfig } from './jail/config.ts'
import { dialGuest } from './jail/dial.ts'
import { killJail, launchJail, logOf, writeConfig } from './jail/jail.ts'
import { openUserNamespace } from './jail/namespace.ts'
import { mayWriteLocal, showDirectory } from './jail/shown.ts'
import { assertWritable, ReadOnlyOverlay } from './jail/writable.ts'
import type { Berth } from './reservation.ts'

/** A guest that starts on a cold, busy machine has been seen to need a second. */
const HELLO_WITHIN_MS = 30_000
/** One that runs already answers at once, unless the machine is in trouble. */
const ANSWERS_WITHIN_MS = 15_000

export interface StartedJail {
  connection: GuestConnection
  limited: Controller[]
}

export interface Start {
  ground: Ground
  supplies: Supplies
  place: Place
  meta: Meta
  /** Takes what processes inside connect to the proxy. */
  onProxy(socket: Duplex): void
  /** For an environment's first start. Its descriptors are closed, however the start ends. */
  berth?: Berth | undefined
  /** Its disk is checked and its overlays get new room to work in, whatever they look like. */
  mend?: boolean
}

/**
 * Starts an environment's jail and waits until its guest answers. No other jail of it may run. When it rejects, no
 * process and no mount is left; the files and cgroups are the caller's.
 */
export async function startJail(start: Start): Promise<StartedJail> {
  const { ground, place, meta, berth } = start
  try {
    if (!existsSync(meta.base)) {
      throw new ApiError('sandbox_unavailable', `The base of the sandbox is gone: it needs ${meta.base} to start.`)
    }
    const state = await ground.diskSpace?.look()
    if (state?.level === 'full') throw noSpace(state)
    return await attempt(start).catch(async error => {
      if (!(error instanceof ReadOnlyOverlay) || berth) throw error
      if (ground.root) closeStage(place)
      ground.log(`${place.id}: ${error.message}; it is mended and started again`)
      return await attempt({ ...start, mend: true })
    })
  } catch (error) {
    await killJail(place)
    if (error instanceof ApiError) throw error
    const code = isNoSpace(error) ? 'disk_full' : 'sandbox_unavailable'
    throw new ApiError(code, `The sandbox did not start: ${messageOf(error)}`)
  } finally {
    berth?.userNamespace.close()
    berth?.disk?.mount.close()
    if (ground.root) closeStage(place)
  }
}

const attempt = (start: Start) => (start.ground.root ? startAsRoot(start) : startAsUser(start))

/** Connects to the guest of a jail that runs. Rejects when it does not answer. */
export async function joinJail({ ground, place, meta, onProxy }: Start, nsjail: number): Promise<StartedJail> {
  const connection = await dialGuest(place, ANSWERS_WITHIN_MS, onProxy)
  try {
    await assertWritable(nsjail)
    if (!ground.root) return { connection, limited: [] }
    const { entrances, limited } = await makeCgroups(place.cgroup, meta.limits)
    if (!(await areInside(nsjail, place.cgroup, entrances))) {
      await enterCgroups(nsjail, entrances)
      await leaveFormerCgroups(nsjail, place.id, entrances)
    }
    return { connection, limited }
  } catch (error) {
    connection.close()
    throw error
  }
}

async function startAsRoot(start: Start): Promise<StartedJail> {
  const { place, meta, supplies, berth } = start
  const { slot } = meta
  if (slot === undefined)
    throw new ApiError('sandbox_unavailable', 'This sandbox belongs to a server that is not root.')
  if (meta.image && !berth && !(await imageReleased(place.image))) {
    throw new ApiError('sandbox_unavailable', 'The disk of the sandbox is still in use by its last run.')
  }
  const firstId = firstIdOf(slot)
  const ids: IdRange = { firstUid: firstId, firstGid: firstId, count: IDS_PER_JAIL }
  const stage = openStage(place, firstId)
  const [guest, cgroups, userNamespace, box] = await Promise.allSettled([
    supplies.guest(),
    makeCgroups(place.cgroup, meta.limits),
    berth?.userNamespace ?? openUserNamespace(firstId),
    showBox(start, stage.box, ids),
  ])
  try {
    fillStage(stage, meta.base, settled(guest), settled(userNamespace))
  } finally {
    if (userNamespace.status === 'fulfilled') userNamespace.value.close()
  }
  settled(box)
  const { entrances, limited } = settled(cgroups)
  return { connection: await enter(start, stage, ids, limited, entrances), limited }
}

/** Mounts the environment's disk, which its first start brings with it. */
async function showBox({ ground, place, meta, berth, mend = false }: Start, box: string, ids: IdRange): Promise<void> {
  if (!meta.image) {
    attachMount(cloneMount(place.box), box)
    if (berth) prepareLayers(box, meta.base, ids, meta.host)
    else if (mend) await renewWork(box, ids)
  } else if (berth?.disk) attachMount(berth.disk.mount, box)
  else await mountKept(ground, place, box, ids, mend)
}

/** Mounts a disk that jails have used, in order. */
async function mountKept(
  ground: Ground,
  { id, image }: Place,
  box: string,
  ids: IdRange,
  mend: boolean,
): Promise<void> {
  const show = () => mountImage(image, box, ground.diskSpace)
  let isMended = await mendImage(image, { force: mend })
  await show().catch(async error => {
    if (isMended) throw error
    isMended = await mendImage(image, { force: true })
    await show()
  })
  if (!isMended) return
  await renewWork(box, ids)
  ground.log(`${id}: its disk was not left in order and is mended`)
}

async function startAsUser(start: Start): Promise<StartedJail> {
  const { ground, place, meta, supplies } = start
  if (meta.slot !== undefined) {
    throw new ApiError('sandbox_unavailable', 'This sandbox belongs to a server that is root.')
  }
  const empty = join(place.directory, 'empty')
  mkdirSync(empty, { recursive: true, mode: 0o755 })
  const guest = await supplies.guest()
  const stage: Stage = { base: meta.base, box: place.box, guest, empty, devices: HOST_DEVICES }
  const ids: IdRange = { firstUid: ground.uid, firstGid: ground.gid, count: 1 }
  if (!existsSync(layersOf(place.box).upper)) prepareLayers(place.box, meta.base, ids, meta.host)
  else if (start.mend) await renewWork(place.box, ids)
  return { connection: await enter(start, stage, ids, [], []), limited: [] }
}

async function enter(
  { place, meta, supplies, onProxy }: Start,
  stage: Stage,
  ids: IdRange,
  limited: Controller[],
  entrances: string[],
): Promise<GuestConnection> {
  const { upper, work, local, localWork } = layersOf(stage.box)
  const ofHost = meta.host ? hostDirectories() : []
  checkMountTargets(upper, meta.base, ['/proc', '/dev', ...ofHost])
  const { processes, diskMb } = meta.limits
  const config = jailConfig({
    ids,
    lower: stage.base,
    upper,
    work,
    guest: stage.guest,
    empty: stage.empty,
    devices: stage.devices,
    shown: ofHost.flatMap(path => showDirectory(path)),
    ...(meta.host && mayWriteLocal() && { local: { upper: local, work: localWork } }),
    ...(processes !== undefined && { processes }),
    ...(processes !== undefined && !limited.includes('pids') && { processesPerUser: processes + OWN_PROCESSES }),
    ...(diskMb !== undefined && !meta.image && { fileSizeMb: diskMb }),
    command: guestCommand(GUEST_INSIDE),
  })
  await writeConfig(place, config)
  return launch(place, await supplies.nsjail(), entrances, onProxy)
}

async function launch(
  place: Place,
  nsjail: string,
  entrances: string[],
  onProxy: Start['onProxy'],
): Promise<GuestConnection> {
  const pid = launchJail(place, nsjail)
  const [connection, entered] = await Promise.allSettled([
    dialGuest(place, HELLO_WITHIN_MS, onProxy),
    enterCgroups(pid, entrances),
  ])
  if (connection.status === 'fulfilled' && entered.status === 'fulfilled') {
    try {
      await assertWritable(pid)
      return connection.value
    } catch (error) {
      connection.value.close()
      await killJail(place)
      throw error
    }
  }
  if (connection.status === 'fulfilled') connection.value.close()
  await killJail(place)
  const problem = connection.status === 'rejected' ? connection.reason : entered.status === 'rejected' && entered.reason
  throw new Error((await logOf(place)) || messageOf(problem))
}

function settled<T>(result: PromiseSettledResult<T>): T {
  if (result.status === 'rejected') throw result.reason
  return result.value
}
