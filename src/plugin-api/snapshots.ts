import type { Isolation } from './isolation.ts'

/**
 * How one disk was made of another. `reflink`: the file system shares blocks until they are written. `layers`: what was there is
 * shared, read-only, below what is written. `copy`: all was copied.
 */
export type CopyMethod = 'reflink' | 'layers' | 'copy'

/** Says how a snapshot was taken. */
export interface TakenSnapshot {
  /** How long programs inside could not write, in ms. 0 means that none ran. */
  frozenMs: number
  /** Says how the snapshot was made of its environment. */
  method: CopyMethod
  /** Says how an environment is made of the snapshot. */
  forkMethod: CopyMethod
  /** The disk space that it takes, apart from the shared part. Absent when the backend cannot tell. */
  bytes?: number
}

/**
 * Keeps the disks of environments as of one moment. An environment is made of a snapshot by `Backend.create` with
 * `EnvironmentSpec.snapshot`: it has the files, and nothing else, of the first one.
 */
export interface Snapshots {
  /**
   * Takes a snapshot under an id that the caller chose (`snap_` and a UUIDv7). What runs inside goes on, and is not part of it. A
   * rejected call leaves nothing, also one that was aborted.
   */
  take(environmentId: string, snapshotId: string, signal?: AbortSignal): Promise<TakenSnapshot>
  /** The class of an environment that is made of the snapshot. Throws not_found for one without files. Absent: that of the backend. */
  isolationOf?(snapshotId: string): Promise<Isolation>
  /**
   * Idempotent. False: environments or snapshots share its files, so they stay; to be called again when one of those is gone. It
   * waits for nobody: an environment that is being made of it counts as one that shares its files.
   */
  remove(snapshotId: string): Promise<boolean>
}
