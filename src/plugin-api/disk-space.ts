/** `low`: less is free than the reserve. `full`: less than half of it. */
export type DiskLevel = 'enough' | 'low' | 'full'

export interface DiskState {
  level: DiskLevel
  freeMb: number
  reserveMb: number
}

/**
 * How much is free on the file system of the server's data directory, and how much is to stay free.
 *
 * @example
 * await context.diskSpace?.assertEnough()
 * await unpack(image, directory)
 */
export interface DiskSpace {
  /** What was measured last, at most a second ago. */
  readonly state: DiskState
  /** Measures now. */
  look(): Promise<DiskState>
  /** Call it before writing much. Measures now; throws disk_full below the reserve. */
  assertEnough(): Promise<void>
  /** Calls the listener at each measurement below the reserve, and at the first one above it again. Returns a function that ends this. */
  watch(listener: (state: DiskState) => void): () => void
}
