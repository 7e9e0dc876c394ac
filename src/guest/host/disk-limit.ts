/** A file cannot outgrow the limit: a program that fills the disk by one file gets an error, and is not stopped. */
const TOLERANCE = 1.1

/** A limit that is kept by a look now and then. */
export interface DiskLimit {
  limitMb: number
  usedMb(): Promise<number>
}

/** Looks now and then whether files have outgrown their limit. */
export interface DiskWatch {
  /** Something may have been written since the last look. */
  touched(): void
  /** Why its processes are to be ended. Undefined within the limit, and without a new look when nothing was written. */
  findExcess(isInUse: boolean): Promise<string | undefined>
  /** Keeps a line for the operator in place of the last one. */
  remark(line: string): void
  readonly remarks: readonly string[]
}

export function watchDisk(home: { readonly disk?: DiskLimit }): DiskWatch {
  let isTouched = true
  let remarks: readonly string[] = []
  return {
    touched() {
      isTouched = true
    },
    async findExcess(isInUse) {
      if (!home.disk || !(isTouched || isInUse)) return undefined
      isTouched = false
      const { limitMb, usedMb } = home.disk
      const used = await usedMb()
      return used > limitMb * TOLERANCE ? `its files took ${used} MB, its limit is ${limitMb} MB` : undefined
    },
    remark(line) {
      remarks = [line]
    },
    get remarks() {
      return remarks
    },
  }
}
