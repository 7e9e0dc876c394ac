/** Copies the sandboxes of a backend into a backup. */
export interface SandboxCopies {
  /**
   * Copies all that persists of a sandbox, as of one moment, to files in a directory that does not exist yet, whether a server uses
   * the sandbox or not. Rejects when it cannot be copied.
   */
  snapshot(environmentId: string, to: string): Promise<SandboxCopy>
  /**
   * Copies what `Snapshots.take` has kept. `isRemoved`: nothing is made of it any more, so that no copy is needed where the copies of
   * sandboxes share nothing. Snapshots of a backend without this get into no backup.
   */
  copySnapshot?(snapshotId: string, to: string, isRemoved: boolean): Promise<SandboxCopy>
}

export interface SandboxCopy {
  /**
   * Where the files belong in a data directory, and where their copies are. The list is empty when the files stay elsewhere, as the note
   * says.
   */
  files: readonly { name: string; from: string }[]
  /** How long programs inside could not write. 0 means that none ran. */
  frozenMs?: number
  /** What else a restore needs, or where the files are. */
  note?: string
}
