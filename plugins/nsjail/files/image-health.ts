import { open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runProgram } from '../host/run-program.ts'
import { SUPERBLOCK_AT, SUPERBLOCK_BYTES } from './superblock.ts'

/** Offsets in bytes of the superblock's fields. */
const STATE_AT = 0x3a
const IS_CLEAN = 1
const HAS_ERRORS = 2
const INCOMPATIBLE_AT = 0x60
const NEEDS_RECOVERY = 4

/** An image with many files takes minutes on a slow disk. */
const WITHIN_MS = 1_800_000

/** An exit code below 4 says that the file system is good now. */
const check = 'e2fsck "$1" "$2" >/dev/null || test $? -lt 4'

/**
 * Repairs the file system of an image that is not mounted, if it was not left in order: the kernel mounts one that has errors, and
 * makes it read-only at the next. True when it was repaired. Rejects when that failed.
 */
export async function mendImage(image: string, { force = false } = {}): Promise<boolean> {
  const { hasErrors, isClean } = await stateOf(image)
  if (isClean && !hasErrors && !force) return false
  await runProgram(['sh', '-c', check, 'sh', hasErrors || force ? '-fy' : '-y', image], WITHIN_MS).catch(error => {
    throw new Error(`the disk of the sandbox is damaged, and e2fsck could not mend it: ${error.message}`)
  })
  return true
}

async function stateOf(image: string): Promise<{ hasErrors: boolean; isClean: boolean }> {
  const file = await open(image, 'r')
  try {
    const { buffer } = await file.read(Buffer.alloc(SUPERBLOCK_BYTES), 0, SUPERBLOCK_BYTES, SUPERBLOCK_AT)
    const state = buffer.readUInt16LE(STATE_AT)
    const needsRecovery = (buffer.readUInt32LE(INCOMPATIBLE_AT) & NEEDS_RECOVERY) !== 0
    return { hasErrors: (state & HAS_ERRORS) !== 0, isClean: (state & IS_CLEAN) !== 0 && !needsRecovery }
  } finally {
    await file.close()
  }
}

const MOUNTED = '/sys/fs/ext4'

/** Finds the mounted images in which the kernel has met an error since their last check. */
export async function findFailedImages(): Promise<Set<string>> {
  const devices = (await readdir(MOUNTED).catch(() => [])).filter(name => name.startsWith('loop'))
  const failed = new Set<string>()
  for (const device of devices) {
    const count = Number(await readFile(join(MOUNTED, device, 'errors_count'), 'utf8').catch(() => '0'))
    if (count > 0) failed.add(await readBackingFile(device))
  }
  return failed
}

const readBackingFile = async (device: string) =>
  (await readFile(`/sys/block/${device}/loop/backing_file`, 'utf8').catch(() => '')).trimEnd()
