import { stat, writeFile } from 'node:fs/promises'
import type { DiskSpace } from '../../../src/plugin-api/index.ts'

const MB = 1024 * 1024
const MAX_MB = 32
const MIN_MB = 8
/** The reserve's divisor: so many sandboxes can have their most pending at once. */
const PART = 8

/**
 * Bounds the data that is written to a mounted image and not yet to the host's disk, where it may find no room: it waits in
 * memory, by default up to a fifth of it, and goes to the disk even after its programs have ended. Kernels before 6.2 cannot.
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

/** Resets the bounds, for the next user of this loop device. */
export async function unboundDirtyPages(device: string): Promise<void> {
  const settings = `/sys/block/${device}/bdi`
  await writeFile(`${settings}/strict_limit`, '0')
    .then(() => writeFile(`${settings}/max_ratio`, '100'))
    .catch(() => {})
}

/** Unpacks the kernel's device number into `major:minor`. */
function toDeviceNumbers(device: number): string {
  const number = BigInt(device)
  const major = (number >> 8n) & 0xfffn
  const minor = (number & 0xffn) | ((number >> 12n) & 0xfff00n)
  return `${major}:${minor}`
}
