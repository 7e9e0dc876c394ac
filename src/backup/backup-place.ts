/** Where backups lie. */
export interface BackupPlace {
  /** The path or address of a name, for people. */
  describe(name: string): string
  /** Oldest first. */
  list(): Promise<StoredFile[]>
  /** Writes a new file; the name is there once all of it is. Rejects when it exists. Resolves to its size. */
  write(name: string, bytes: AsyncIterable<Uint8Array>): Promise<number>
  read(name: string): Promise<AsyncIterable<Uint8Array>>
  remove(name: string): Promise<void>
}

export interface StoredFile {
  name: string
  bytes: number
}

/** A backup among others: its place, and its name when one was given. */
export interface Address {
  place: BackupPlace
  name?: string
}
