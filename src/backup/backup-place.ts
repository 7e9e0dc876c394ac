/** A place that stores backups. */
export interface BackupPlace {
  /** Shows the path or address of a name to people. */
  describe(name: string): string
  /** Lists the backups, oldest first. */
  list(): Promise<StoredFile[]>
  /** Writes a new file, whose name appears when it is complete. Rejects when the name exists. Resolves to the size. */
  write(name: string, bytes: AsyncIterable<Uint8Array>): Promise<number>
  read(name: string): Promise<AsyncIterable<Uint8Array>>
  remove(name: string): Promise<void>
}

export interface StoredFile {
  name: string
  bytes: number
}

/** The address of a backup: its place, and its name when one was given. */
export interface Address {
  place: BackupPlace
  name?: string
}
