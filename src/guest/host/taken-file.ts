import { close, read, statfsSync, writev } from 'node:fs'
import { type GuestDescriptors, takeDescriptor } from './guest-descriptors.ts'

/** A file of a sandbox that the server reads or writes itself, by a descriptor of the guest. Linux does it on another thread. */
export interface TakenFile {
  /** Resolves to how many bytes were there; 0 at the end of the file. */
  read(into: Uint8Array, position: number): Promise<number>
  /** Writes all of the pieces. Rejects with the error of Linux, as ENOSPC. */
  write(pieces: readonly Uint8Array[], position: number): Promise<void>
  /** Resolves when the descriptor is closed, after what is under way. Idempotent. */
  close(): Promise<void>
}

/** Takes only a sandbox's own files. A read of other files, such as those of /proc, may have to wait, or may act as the server. */
const OVERLAY = 0x794c7630

/** Takes the descriptor that the guest names. Undefined when it is no regular file on the sandbox's disk, or cannot be taken. */
export function takeFile(from: GuestDescriptors, number: unknown): TakenFile | undefined {
  try {
    const taken = takeDescriptor(from, number, 'file')
    if (statfsSync(`/proc/self/fd/${taken.number}`).type === OVERLAY) return openTaken(taken.number)
    taken.close()
    return undefined
  } catch {
    return undefined
  }
}

function openTaken(descriptor: number): TakenFile {
  let underWay = 0
  let closing: PromiseWithResolvers<void> | undefined
  const closeWhenFree = () => {
    if (closing && underWay === 0) close(descriptor, () => closing?.resolve())
  }
  /** Once the descriptor is closed, its number may be another file's: it is closed after the last use, and not used after that. */
  const using = async (act: (done: (error: Error | null, count: number) => void) => void): Promise<number> => {
    if (closing) throw new Error('the file is closed')
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    underWay++
    act((error, count) => (error ? reject(error) : resolve(count)))
    try {
      return await promise
    } finally {
      underWay--
      closeWhenFree()
    }
  }

  return {
    read: (into, position) => using(done => read(descriptor, into, 0, into.byteLength, position, done)),
    async write(pieces, position) {
      let left = [...pieces]
      for (let at = position; left.length > 0; ) {
        const written = await using(done => writev(descriptor, left, at, done))
        at += written
        left = [...after(left, written)]
      }
    },
    close() {
      if (!closing) {
        closing = Promise.withResolvers()
        closeWhenFree()
      }
      return closing.promise
    },
  }
}

/** Returns the part of the pieces after the first `count` bytes. */
function* after(pieces: readonly Uint8Array[], count: number): Generator<Uint8Array, void> {
  let skip = count
  for (const piece of pieces) {
    if (piece.byteLength > skip) yield piece.subarray(skip)
    skip = Math.max(0, skip - piece.byteLength)
  }
}
