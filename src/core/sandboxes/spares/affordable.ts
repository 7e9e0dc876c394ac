import type { DiskSpace } from '../../../plugin-api/index.ts'

const MB = 1024 * 1024
/** Memory that spares leave to everything else. */
const LEFT_FREE_MB = 256
/** What one spare may come to, with the kernel's share. */
const SPARE_MB = 32

/** How many spares there may be beside the `present` ones, or, negative, how many of these are too many. */
export function affordableSpares(diskSpace: DiskSpace, present: number): number {
  if (diskSpace.state.level !== 'enough') return -present
  // Counts the limit of the server's own cgroup too.
  const free = process.availableMemory() / MB - LEFT_FREE_MB
  return Math.max(-present, Math.floor(free / SPARE_MB))
}
