/** A file cannot outgrow the limit: a program that fills the disk by one file gets an error, and is not stopped. */
const TOLERANCE = 1.1

/** How long a sandbox that was stopped for its files may run again to remove some. On a busy machine its start alone takes seconds. */
const ROOM_WITHIN_MS = 30_000
/** What a start by itself may write. */
const START_WRITES_MB = 1

/** A limit that is kept by a look now and then. */
export interface DiskLimit {
  limitMb: number
  usedMb(): Promise<number>
}

/** Looks now and then whether files have outgrown their limit. */
export interface DiskWatch {
  /** Something may have been written since the last look. */
  touched(): void
  /**
   * Why its processes are to be ended. Undefined within the limit, and without a new look when nothing was written. Whoever used it
   * again after such an end has a while to make room, as long as nothing more is written.
   */
  findExcess(isInUse: boolean): Promise<string | undefined>
  /** Keeps a line for the operator in place of the last one. */
  remark(line: string): void
  readonly remarks: readonly string[]
}

export function watchDisk(home: { readonly disk?: DiskLimit }): DiskWatch {
  let isTouched = true
  let remarks: readonly string[] = []
  /** What its files took when it was stopped for them, and since when it has been used again. */
  let stopped: { usedMb: number; usedAgainAt?: number } | undefined
  const mayMakeRoom = (usedMb: number) =>
    stopped?.usedAgainAt !== undefined &&
    usedMb <= stopped.usedMb + START_WRITES_MB &&
    performance.now() - stopped.usedAgainAt < ROOM_WITHIN_MS

  return {
    touched() {
      isTouched = true
      if (stopped) stopped.usedAgainAt ??= performance.now()
    },
    async findExcess(isInUse) {
      if (!home.disk || !(isTouched || isInUse)) return undefined
      isTouched = false
      const { limitMb, usedMb } = home.disk
      const used = await usedMb()
      if (used <= limitMb * TOLERANCE) {
        stopped = undefined
        return undefined
      }
      if (mayMakeRoom(used)) {
        isTouched = true
        return undefined
      }
      stopped = { usedMb: used }
      return `its files took ${used} MB, its limit is ${limitMb} MB`
    },
    remark(line) {
      remarks = [line]
    },
    get remarks() {
      return remarks
    },
  }
}
