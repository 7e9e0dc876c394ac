import { mkdir, readdir, readFile, rm, rmdir, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Descriptor } from '../../../src/descriptor.ts'
import type { DiskSpace } from '../../../src/plugin-api/index.ts'
import { cloneMount, detachMount } from '../host/linux.ts'
import { runProgram } from '../host/run-program.ts'
import { boundDirtyPages, unboundDirtyPages } from './dirty-pages.ts'

/** From this size on, mkfs.ext4 chooses the journal's size. */
const OWN_JOURNAL_FROM_MB = 256
const JOURNAL_MB = 16
const RELEASED_WITHIN_MS = 5000
const RELEASED_POLL_MS = 2

/** A disk that no jail has used, mounted but nowhere in the tree. */
export interface NewDisk {
  image: string
  mount: Descriptor
}

/**
 * Makes the disk of an environment, as root: a sparse ext4 image of the size that is the limit, mounted through a loop
 * device. Writing past the limit is "no space left on device", for the environment alone. The image is
 * made in `directory`; `fill` gets the mounted disk. A rejected call leaves nothing.
 */
export async function makeDisk(
  directory: string,
  sizeMb: number,
  fill: (disk: string) => void,
  diskSpace?: DiskSpace,
): Promise<NewDisk> {
  const name = crypto.randomUUID()
  const image = join(directory, `${name}.img`)
  const target = join(directory, name)
  try {
    await Promise.all([format(image, sizeMb), mkdir(target, { mode: 0o700 })])
    await mountImage(image, target, diskSpace)
    fill(target)
    // The disk must survive a loss of power. It is prepared in the background, so no create waits for this.
    await runProgram(['sync', '-f', target])
    return { image, mount: cloneMount(target) }
  } catch (error) {
    await rm(image, { force: true })
    throw error
  } finally {
    detachQuietly(target)
    await rmdir(target).catch(() => {})
  }
}

/** Without CAP_SYS_ADMIN umount fails too: the error of the mount is the one to report. */
function detachQuietly(target: string): void {
  try {
    detachMount(target)
  } catch {
    // The directory stays too; the next start sweeps it.
  }
}

export async function dropDisk({ image, mount }: NewDisk): Promise<void> {
  mount.close()
  await rm(image, { force: true })
}

async function format(path: string, sizeMb: number): Promise<void> {
  await writeFile(path, '', { mode: 0o600, flag: 'wx' })
  await truncate(path, sizeMb * 1024 * 1024)
  const journal = sizeMb < OWN_JOURNAL_FROM_MB ? [] : ['-J', `size=${JOURNAL_MB}`]
  // The file is all holes: nothing needs zeroing, now or in the background.
  const lazy = ['-E', 'nodiscard,lazy_itable_init=1,lazy_journal_init=1', '-O', '^resize_inode']
  await runProgram(['mkfs.ext4', '-q', '-F', '-b', '4096', '-m', '0', ...lazy, ...journal, path])
}

/** mount(8) finds a free loop device and refuses or shares one that has the image already: two would corrupt it. */
export async function mountImage(image: string, target: string, diskSpace?: DiskSpace): Promise<void> {
  const options = 'loop,nosuid,nodev,noatime,noinit_itable,discard'
  await runProgram(['mount', '-n', '-t', 'ext4', '-o', options, image, target])
  await boundDirtyPages(target, diskSpace)
}

/** Waits until no loop device has the image, which is as soon as its last mount is gone. False when one keeps it. */
export async function imageReleased(image: string): Promise<boolean> {
  const deadline = performance.now() + RELEASED_WITHIN_MS
  while (await findLoopDevice(image)) {
    if (performance.now() > deadline) return false
    await Bun.sleep(RELEASED_POLL_MS)
  }
  return true
}

/** Does `work`, which unmounts an image, and waits until the image is released. False when a loop device keeps it. */
export async function releaseImage(image: string, work: () => Promise<void>): Promise<boolean> {
  const device = await findLoopDevice(image)
  await work()
  const isReleased = await imageReleased(image)
  if (device && isReleased) await unboundDirtyPages(device)
  return isReleased
}

/** Finds the loop device that has an image. */
async function findLoopDevice(image: string): Promise<string | undefined> {
  const devices = (await readdir('/sys/block').catch(() => [])).filter(name => name.startsWith('loop'))
  const files = await Promise.all(
    devices.map(name => readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => '')),
  )
  return devices[files.findIndex(file => file.trimEnd() === image)]
}

const PROBE_MB = 16

/** Makes, mounts and removes a small image. Rejects with the error of the step that fails. */
export async function probeImages(directory: string): Promise<void> {
  const disk = await makeDisk(directory, PROBE_MB, () => {})
  await dropDisk(disk)
  await imageReleased(disk.image)
}
