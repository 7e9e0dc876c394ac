import { existsSync, statSync } from 'node:fs'
import { copyFile, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError, messageOf } from '../../../src/errors.ts'
import { erase } from '../host/erase.ts'
import { type EnvironmentPaths, getEnvironmentPaths, realDataDirectory } from '../host/layout.ts'
import { mountExt4 } from '../host/linux.ts'
import { listLoopDevices, readImageOf } from '../host/loop-device.ts'
import { readRecord } from '../host/record.ts'
import { runProgram } from '../host/run-program.ts'
import { findJail, listChildren } from '../jail/jail.ts'
import { runFreezer } from './freezer.ts'

const ATTEMPTS = 5
const MARK = 'frozen'

/** Says how a snapshot was taken. */
export interface Snapshot {
  /** How long programs inside could not write. 0 means that none ran. */
  frozenMs: number
}

/**
 * Copies a whole sandbox, as of one moment, into a new directory `to`: `meta.json`, and `disk.img` or `box.tar`. With `asTree` the
 * directory `box` replaces the archive. Meanwhile an image's file system is frozen, or without an image the processes are. A server
 * may run: its stops and removals wait, and the copy notices a start. Throws not_found when there is no such sandbox.
 */
export async function takeSnapshot(
  dataDirectory: string,
  id: string,
  to: string,
  { asTree = false } = {},
): Promise<Snapshot> {
  const paths = getEnvironmentPaths(realDataDirectory(dataDirectory), id)
  const record = await readRecord(paths)
  if (!record) throw new ApiError('not_found', 'The sandbox has no files any more.')
  await untilThawed(paths)
  await mkdir(to, { recursive: true, mode: 0o700 })
  await copyFile(paths.record, join(to, 'meta.json'))
  const frozenMs = record.hasImage
    ? await copyImage(paths, join(to, 'disk.img'))
    : await copyBox(paths, { to: join(to, asTree ? 'box' : 'box.tar'), asTree })
  return { frozenMs }
}

async function copyImage(paths: EnvironmentPaths, copy: string): Promise<number> {
  const { image } = paths
  for (let attempt = 1; ; attempt++) {
    const device = findDevice(image)
    const before = stampOf(image)
    if (device !== undefined) {
      const frozenMs = await copyMounted(paths, device, copy)
      if (frozenMs !== undefined) return frozenMs
    } else {
      await runProgram(['cp', '--reflink=auto', '--', image, copy], 0)
      // A mount changes the image, even when it has ended.
      if (findDevice(image) === undefined && stampOf(image) === before) return 0
    }
    if (attempt === ATTEMPTS) throw new Error('it starts and stops too often for a snapshot')
    await rm(copy, { force: true })
  }
}

/** Undefined once the device has let go of the image. */
async function copyMounted(paths: EnvironmentPaths, device: string, copy: string): Promise<number | undefined> {
  const { image } = paths
  const mount = openMount(device)
  if (!mount) return undefined
  try {
    // While it is mounted here too, the device keeps its image.
    if (readImageOf(device) !== image) return undefined
    return await runFreezer({ mark: join(paths.directory, MARK), mount, copy: { from: image, to: copy, device } })
  } finally {
    mount.close()
  }
}

/** Opens another mount of a mounted file system. Undefined when the file system is no longer mounted. */
function openMount(device: string) {
  try {
    return mountExt4(`/dev/${device}`)
  } catch (error) {
    if (readImageOf(device) === '') return undefined
    throw new Error(`its disk cannot be frozen: ${messageOf(error)}`)
  }
}

const POLL_MS = 10

/** Resolves when no backup copies the sandbox. Thaws a sandbox that a killed backup has left frozen. */
export async function untilThawed(paths: EnvironmentPaths): Promise<void> {
  while (await isCopied(paths)) await Bun.sleep(POLL_MS)
}

/** True while a backup copies the sandbox. Thaws a sandbox that a killed backup has left frozen. */
export async function isCopied(paths: EnvironmentPaths): Promise<boolean> {
  const mark = join(paths.directory, MARK)
  // This is the usual case, so it costs no exception.
  if (!existsSync(mark)) return false
  const read = async () => (await readFile(mark, 'utf8').catch(() => '')).trim()
  const pid = (await read()) || (await Bun.sleep(POLL_MS).then(read))
  if (pid !== '' && (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes(mark)) return true
  if (existsSync(mark)) await thaw(paths, mark)
  return false
}

async function thaw(paths: EnvironmentPaths, mark: string): Promise<void> {
  const device = findDevice(paths.image)
  const mount = device === undefined ? undefined : openMount(device)
  try {
    if (mount) await runFreezer({ mark, mount })
    else await runFreezer({ mark, processes: await findNamespace(paths) })
  } finally {
    mount?.close()
  }
}

async function copyBox(paths: EnvironmentPaths, { to, asTree }: { to: string; asTree: boolean }): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const processes = await findNamespace(paths)
    const pack = { from: paths.diskDirectory, to, asTree }
    const frozenMs = await runFreezer({ mark: join(paths.directory, MARK), processes, pack })
    if (processes !== '' || (await findNamespace(paths)) === '') return frozenMs
    if (attempt === ATTEMPTS) throw new Error('it starts and stops too often for a snapshot')
    await erase(to)
  }
}

/** The pid namespace of a jail by its name in /proc. The text is empty when the jail does not run. */
async function findNamespace(paths: EnvironmentPaths): Promise<string> {
  const nsjail = await findJail(paths)
  const [child] = nsjail === undefined ? [] : await listChildren(nsjail)
  return child === undefined ? '' : (await runProgram(['readlink', `/proc/${child}/ns/pid`]).catch(() => '')).trim()
}

const findDevice = (image: string) => listLoopDevices().find(name => readImageOf(name) === image)

function stampOf(image: string): string {
  const { mtimeNs, ctimeNs, ino } = statSync(image, { bigint: true })
  return `${ino} ${mtimeNs} ${ctimeNs}`
}
