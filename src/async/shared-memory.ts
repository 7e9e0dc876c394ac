/** Memory that many owners share. It bounds what all of them hold at once, and what each does. */
export interface Memory {
  /** Begins with nothing. Dispose of the loan when its bytes are freed. */
  borrow(owner: string): Loan
}

export interface Loan extends Disposable {
  /**
   * Takes so many bytes more; less than 0 gives some back. False when there is no room for them now. Once disposed of, it
   * counts nothing.
   */
  grow(bytes: number): boolean
}

export interface MemoryOptions {
  bytes: number
  /** The first bytes of each loan that are not counted: small senders have room while others send much. */
  freeBytes?: number
}

/** One owner may have at most half of it, so there is always room for another. */
export function createMemory({ bytes: most, freeBytes = 0 }: MemoryOptions): Memory {
  const owners = new Map<string, number>()
  let taken = 0
  return {
    borrow(owner) {
      let held = 0
      let counted = 0
      let isOver = false
      const count = (bytes: number) => {
        const own = (owners.get(owner) ?? 0) + bytes
        if (own > 0) owners.set(owner, own)
        else owners.delete(owner)
        taken += bytes
        counted += bytes
      }
      return {
        grow(bytes) {
          if (isOver) return true
          const more = Math.max(0, held + bytes - freeBytes) - counted
          if (more > 0 && (taken + more > most || (owners.get(owner) ?? 0) + more > most / 2)) return false
          held += bytes
          count(more)
          return true
        },
        [Symbol.dispose]() {
          isOver = true
          count(-counted)
        },
      }
    },
  }
}
