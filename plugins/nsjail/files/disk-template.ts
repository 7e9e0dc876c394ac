import { open, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { checked, LinuxError, libc } from '../host/libc.ts'
import { mountExt4 } from '../host/linux.ts'
import { attachLoop } from '../host/loop-device.ts'
import { runProgram } from '../host/run-program.ts'
import { type LayerEntry, makeLayers } from './layers.ts'
import { SUPERBLOCK_AT, SUPERBLOCK_BYTES, withNewIdentity } from './superblock.ts'

const MB = 1024 * 1024
/** From this size on, mkfs.ext4 chooses the journal's size. */
const OWN_JOURNAL_FROM_MB = 256
const JOURNAL_MB = 16
const SEEK_DATA = 3
const SEEK_HOLE = 4

/** A formatted and filled file system that every image of its kind begins as a copy of. */
export interface DiskTemplate {
  sizeMb: number
  /** What the image holds outside of its holes: some hundred KB. */
  parts: readonly { at: number; bytes: Buffer }[]
  superblock: Buffer
}

/** Formats an image in `directory`, fills it as planned, and reads it. Nothing of it stays on the disk. */
export async function makeTemplate(
  directory: string,
  sizeMb: number,
  plan: readonly LayerEntry[],
): Promise<DiskTemplate> {
  const image = join(directory, `${crypto.randomUUID()}.template`)
  try {
    await format(image, sizeMb)
    fill(image, plan)
    return { sizeMb, ...(await readImage(image)) }
  } finally {
    await rm(image, { force: true })
  }
}

const PROBE_MB = 16

/** Makes, mounts and removes a small image. Rejects with the error of the step that fails. */
export async function probeImages(directory: string): Promise<void> {
  await makeTemplate(directory, PROBE_MB, [])
}

/** Writes an image that differs from its template in the file system's identity. The caller syncs it. */
export async function writeCopy({ sizeMb, parts, superblock }: DiskTemplate, image: string): Promise<void> {
  const file = await open(image, 'wx', 0o600)
  try {
    await file.truncate(sizeMb * MB)
    for (const { at, bytes } of parts) await file.write(bytes, 0, bytes.length, at)
    await file.write(withNewIdentity(superblock), 0, SUPERBLOCK_BYTES, SUPERBLOCK_AT)
  } finally {
    await file.close()
  }
}

async function format(path: string, sizeMb: number): Promise<void> {
  await writeFile(path, '', { mode: 0o600, flag: 'wx' })
  await truncate(path, sizeMb * MB)
  const journal = sizeMb < OWN_JOURNAL_FROM_MB ? [] : ['-J', `size=${JOURNAL_MB}`]
  // The file is all holes: nothing needs zeroing, now or in the background.
  const lazy = ['-E', 'nodiscard,lazy_itable_init=1,lazy_journal_init=1']
  // With a seed of their own, the checksums of all blocks outlast a change of the file system's identity.
  const features = ['-O', '^resize_inode,metadata_csum,metadata_csum_seed']
  await runProgram(['mkfs.ext4', '-q', '-F', '-b', '4096', '-m', '0', ...lazy, ...features, ...journal, path])
}

function fill(image: string, plan: readonly LayerEntry[]): void {
  const { name, descriptor } = attachLoop(image)
  try {
    const mount = mountExt4(`/dev/${name}`)
    try {
      makeLayers(`/proc/self/fd/${mount.number}`, plan)
    } finally {
      // The last user of the file system writes it to the image.
      mount.close()
    }
  } finally {
    descriptor.close()
  }
}

async function readImage(image: string): Promise<Omit<DiskTemplate, 'sizeMb'>> {
  const file = await open(image, 'r')
  try {
    const parts: { at: number; bytes: Buffer }[] = []
    for (let at = findData(file.fd, 0); at !== undefined; ) {
      const end = Number(libc().lseek(file.fd, at, SEEK_HOLE))
      const bytes = Buffer.alloc(end - at)
      await file.read(bytes, 0, bytes.length, at)
      parts.push({ at, bytes })
      at = findData(file.fd, end)
    }
    const superblock = Buffer.alloc(SUPERBLOCK_BYTES)
    await file.read(superblock, 0, SUPERBLOCK_BYTES, SUPERBLOCK_AT)
    return { parts, superblock }
  } finally {
    await file.close()
  }
}

/** Finds where the next data begins. Returns undefined when only holes follow. */
function findData(file: number, from: number): number | undefined {
  try {
    return checked('lseek', Number(libc().lseek(file, from, SEEK_DATA)))
  } catch (error) {
    if (error instanceof LinuxError && error.code === 'ENXIO') return undefined
    throw error
  }
}
