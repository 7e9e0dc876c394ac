import { writeSync } from 'node:fs'
import { createLock } from '../../async/lock.ts'
import type { Descriptor } from '../../descriptor.ts'
import { codeOf } from '../../read/error-code.ts'

/** Waits this long for a full pipe to be read before it tries again. */
const FULL_PIPE_POLL_MS = 1

/** Writes to a pipe or a terminal in the order of the calls, as fast as its reader reads. */
export interface Input {
  /** Resolves early when `isGone`. Rejects when nobody reads any more. */
  write(bytes: Uint8Array, isGone: () => boolean): Promise<void>
  /** Closes it after what is being written. */
  end(): void
}

export function createInput(to: Descriptor): Input {
  const lock = createLock()
  const writeAll = async (bytes: Uint8Array, isGone: () => boolean) => {
    for (let offset = 0; offset < bytes.byteLength && !isGone(); ) {
      if (!to.isOpen) throw new Error('nobody reads')
      const written = writeSome(to.number, bytes.subarray(offset))
      offset += written
      if (written === 0) await Bun.sleep(FULL_PIPE_POLL_MS)
    }
  }
  return {
    write: (bytes, isGone) => lock(() => writeAll(bytes, isGone)),
    end: () => void lock(() => to.close()),
  }
}

function writeSome(fd: number, bytes: Uint8Array): number {
  try {
    return writeSync(fd, bytes)
  } catch (error) {
    if (codeOf(error) === 'EAGAIN') return 0
    throw error
  }
}
