import { stat, writeFile } from 'node:fs/promises'
import type { DiskSpace } from '../../../src/plugin-api/index.ts'

const MB = 1024 * 1024
const MAX_MB = 32
const MIN_MB = 8
/** Of the reserve: so many sandboxes can have as much on its way at once. */
const PART = 8

/**
 * Bounds what is written to a mounted image and not yet to the host's disk, where it may find no room: what programs have written
 * lies in memory, by default up to a fifth of it, and goes to the disk even when they have been ended. Kernels before 6.2 cannot.
 */
export async function boundDirtyPages(target: string, diskSpace: DiskSpace | undefined): Promise<void> {
  const { reserveMb = 0 } = diskSpace?.state ?? {}
  if (reserveMb === 0) return
  const maxBytes = Math.max(MIN_MB, Math.min(MAX_MB, Math.floor(reserveMb / PART))) * MB
  const device = `/sys/class/bdi/${toDeviceNumbers((await stat(target)).dev)}`
  await writeFile(`${device}/max_bytes`, String(maxBytes))
    .then(() => writeFile(`${device}/strict_limit`, '1'))
    .catch(() => {})
}

/** For the next who gets this loop device. */
export async function unboundDirtyPages(device: string): Promise<void> {
  const settings = `/sys/block/${device}/bdi`
  await writeFile(`${settings}/strict_limit`, '0')
    .then(() => writeFile(`${settings}/max_ratio`, '100'))
    .catch(() => {})
}

/** `major:minor`, as the kernel packs them into a number. */
function toDeviceNumbers(device: number): string {
  const number = BigInt(device)
  const major = (number >> 8n) & 0xfffn
  const minor = (number & 0xffn) | ((number >> 12n) & 0xfff00n)
  return `${major}:${minor}`
}
