/** `low`: below the reserve. `full`: below half of it. */
export type DiskLevel = 'enough' | 'low' | 'full'

export interface DiskState {
  level: DiskLevel
  freeMb: number
  reserveMb: number
}

/** What is free on the file system of the server's data directory, and what of it is kept free. */
export interface DiskSpace {
  /** As it was seen last, at most a second ago. */
  readonly state: DiskState
  /** Looks now. */
  look(): Promise<DiskState>
  /** For what grows. Looks now; throws disk_full below the reserve. */
  assertEnough(): Promise<void>
  /** Calls it with each look below the reserve, and with the first one above it again. Returns what ends that. */
  watch(listener: (state: DiskState) => void): () => void
}
