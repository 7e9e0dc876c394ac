import type { DiskSpace } from '../../../plugin-api/index.ts'

const MB = 1024 * 1024
/** Memory that spares leave to everything else. */
const LEFT_FREE_MB = 256
/** The memory of one spare, with the kernel's part. */
const SPARE_MB = 32

/** How many more spares the machine has room for; negative when that many of the `present` ones are too many. */
export function affordableSpares(diskSpace: DiskSpace, present: number): number {
  if (diskSpace.state.level !== 'enough') return -present
  // This value also respects the limit of the server's own cgroup.
  const free = process.availableMemory() / MB - LEFT_FREE_MB
  return Math.max(-present, Math.floor(free / SPARE_MB))
}
